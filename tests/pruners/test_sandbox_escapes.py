"""Ways out of the sandbox that methods of others have tried: each is shut, and what honest methods do works."""

from __future__ import annotations

import os
import pty
import resource
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from pruners import prune, synthetic_page
from pruners.core.errors import CatalogError, ExpressionError, PrunerError
from pruners.guests import sandbox
from pruners.guests.guest import Guest
from pruners.guests.host import Isolation, host

needs_sandbox = pytest.mark.skipif(sandbox.missing() is not None, reason=str(sandbox.missing()))
PAGE = synthetic_page(4, 4)
ROOT = str(Path(sandbox.__file__).parents[2])
TRIES = """
import ctypes, fcntl, os, resource, socket, termios
from pruners import scorer

libc = ctypes.CDLL(None, use_errno=True)

def called(*arguments):
    found = libc.syscall(*arguments)
    if found < 0:
        raise OSError(ctypes.get_errno(), "refused")

@scorer("tries")
def tries(page):
WHAT
    return page.vectors[:, 0]
"""


def method(folder: Path, what: str, mode: str = "on") -> Guest:
    (folder / "tries.py").write_text(TRIES.replace("WHAT", textwrap.indent(what, "    ")))
    ((found, _),) = host([str(folder / "tries.py")], apart=Isolation(mode))
    assert isinstance(found, Guest)
    return found


LOADED = """
import os
from pruners import scorer

print("loaded in", os.getpid())
open("PLACE", "w").write(str(os.getpid()))

@scorer("mine")
def mine(page):
    return page.vectors[:, 0]
"""


@pytest.mark.parametrize("name", ["\uff4dine", "min\u212f", "adaptive(\uff4dine)"])
def test_a_name_in_other_letters_does_not_run_a_file_here(tmp_path: Path, name: str) -> None:
    (tmp_path / "mine.py").write_text(LOADED.replace("PLACE", str(tmp_path / "escaped")))
    with pytest.raises(ExpressionError, match="plain letters"):
        host([f"{tmp_path / 'mine.py'}:{name}"], apart=Isolation("off"))
    assert not (tmp_path / "escaped").exists()


def test_only_built_in_methods_are_loaded_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if a name of a file were overlooked."""
    from pruners.core import expression

    (tmp_path / "mine.py").write_text(LOADED.replace("PLACE", str(tmp_path / "escaped")))
    monkeypatch.setattr(expression, "names", lambda text: set(), raising=False)
    with pytest.raises((CatalogError, ExpressionError), match="not built in"):
        host([f"{tmp_path / 'mine.py'}:mine"], apart=Isolation("off"))
    assert not (tmp_path / "escaped").exists()


@needs_sandbox
@pytest.mark.parametrize(
    "what",
    [
        "fcntl.ioctl(0, termios.TIOCSTI, b'x')",
        "called(16 if os.uname().machine == 'x86_64' else 29, 0, ctypes.c_uint64(termios.TIOCSTI | 1 << 32), b'x')",
        "fcntl.ioctl(os.open(__file__, 0), 0x40086602, bytes(8))",
        "fcntl.fcntl(0, fcntl.F_SETOWN, {parent})",
        "fcntl.fcntl(0, fcntl.F_SETSIG, 9)",
        "fcntl.lockf(os.open(__file__, 0), fcntl.LOCK_SH)",
        "fcntl.flock(os.open(__file__, 0), fcntl.LOCK_SH)",
        "os.fork()",
        "os.execv('/bin/true', ['true'])",
        "called(libc_clone, 0x10000000 | 17, 0, 0, 0, 0)",
        "os.setsid()",
        "os.chmod('{secret}', 0o777)",
        "os.chmod(os.open(__file__, 0), 0o777)",
        "called(452, -100, b'{secret}', 0o777, 0)",
        "os.chown('{secret}', os.getuid(), os.getgid())",
        "os.utime('{secret}', (1, 1))",
        "os.setxattr('{secret}', 'user.x', b'1')",
        "os.truncate('{secret}', 0)",
        "resource.prlimit({parent}, resource.RLIMIT_NOFILE)",
        "os.setpriority(os.PRIO_PROCESS, {parent}, 19)",
        "os.nice(1)",
        "os.sched_setaffinity({parent}, os.sched_getaffinity(0))",
        "os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))",
        "ctypes.set_errno(0); libc.sigqueue({parent}, 0, 0); raise OSError(ctypes.get_errno(), 'sigqueue')",
        "ctypes.set_errno(0); libc.shmget(0x51ab, 4096, 0o1666); raise OSError(ctypes.get_errno(), 'shmget')",
        "ctypes.set_errno(0); libc.msgget(0x51ab, 0o1666); raise OSError(ctypes.get_errno(), 'msgget')",
        "ctypes.set_errno(0); libc.semget(0x51ab, 1, 0o1666); raise OSError(ctypes.get_errno(), 'semget')",
        "ctypes.set_errno(0); libc.inotify_init1(0); raise OSError(ctypes.get_errno(), 'inotify')",
        "ctypes.set_errno(0); libc.prctl(1, 0, 0, 0, 0); raise OSError(ctypes.get_errno(), 'outlive the harness')",
        "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
        "socket.socketpair()[0].bind(b'\\0pruneboard')",
        "open('/dev/shm/pruneboard', 'w')",
    ],
)
def test_a_sandbox_refuses_what_reaches_others(tmp_path: Path, what: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("gold")
    before = secret.stat()
    clone = "56 if os.uname().machine == 'x86_64' else 220"
    text = what.replace("libc_clone", clone).format(secret=secret, parent=os.getpid())
    with pytest.raises(PrunerError, match="PermissionError"):
        prune(method(tmp_path, text), PAGE, [0.5])
    after = secret.stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_size) == (before.st_mode, before.st_mtime_ns, before.st_size)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 4


@needs_sandbox
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="only there a call has two numbers")
def test_a_call_by_another_number_ends_the_process(tmp_path: Path) -> None:
    with pytest.raises(PrunerError, match="ended without a word"):
        prune(method(tmp_path, "called(0x40000000 | 41, 1, 1, 0)"), PAGE, [0.5])


OLDER = """
import os, sys
from pathlib import Path
from pruners.guests import sandbox

sandbox._version = lambda: 2
sandbox.enter([Path(sys.argv[1])])
print(open(sys.argv[1]).read())
try:
    os.open(sys.argv[1], os.O_RDONLY | os.O_TRUNC)
except PermissionError:
    print("refused")
"""


@needs_sandbox
def test_on_an_older_kernel_a_file_that_may_be_read_cannot_be_emptied(tmp_path: Path) -> None:
    (tmp_path / "weights").write_text("1.5")
    command = [sys.executable, "-c", OLDER, str(tmp_path / "weights")]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": ROOT}, check=False)
    assert done.stdout.split() == ["1.5", "refused"], done.stderr
    assert (tmp_path / "weights").read_text() == "1.5"


HONEST = """
import asyncio, concurrent.futures, threading
import joblib, numba, numpy as np, torch
from pruners import scorer

@numba.njit(parallel=True)
def total(values):
    found = np.zeros(len(values))
    for i in numba.prange(len(values)):
        found[i] = values[i].sum()
    return found

@scorer("honest")
def honest(page):
    torch.set_num_threads(2)
    torch.ones(512, 512) @ torch.ones(512, 512)
    asyncio.run(asyncio.sleep(0))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(np.linalg.svd, [np.ones((20, 20))] * 8))
    joblib.Parallel(2, backend="threading")(joblib.delayed(abs)(i) for i in range(4))
    with open("/dev/null", "w") as nowhere:
        print("nothing", file=nowhere)
    thread = threading.Thread(target=np.ones, args=(4,))
    thread.start()
    thread.join()
    return torch.from_numpy(total(page.vectors.double().numpy()))
"""


@needs_sandbox
def test_threads_numba_joblib_and_asyncio_work_in_a_sandbox(tmp_path: Path) -> None:
    (tmp_path / "honest.py").write_text(HONEST)
    ((found, _),) = host([str(tmp_path / "honest.py")], apart=Isolation("on"))
    assert len(prune(found, PAGE, [0.5]).kept(0)) == 8


TYPES = """
import sys
from pathlib import Path
from pruners import prune, synthetic_page
from pruners.guests.host import Isolation, host

if __name__ == "__main__":
    ((found, _),) = host([sys.argv[1]], apart=Isolation("on"))
    try:
        prune(found, synthetic_page(4, 4), [0.5])
    except Exception as error:
        print("refused", error)
"""


@pytest.mark.slow
@needs_sandbox
def test_a_sandboxed_method_has_no_terminal(tmp_path: Path) -> None:
    """What it prints is shown, but in plain characters; it can neither type nor open the terminal."""
    what = "import sys; print('\\x1b]0;pwned\\x07said', flush=True); assert not any(map(os.isatty, range(3)))"
    method(tmp_path, what)
    (tmp_path / "run.py").write_text(TYPES)
    inside, outside = pty.openpty()
    command = [sys.executable, str(tmp_path / "run.py"), str(tmp_path / "tries.py")]
    running = subprocess.Popen(
        command, stdin=outside, stdout=outside, stderr=outside, env={**os.environ, "PYTHONPATH": ROOT}
    )
    os.close(outside)
    seen = b""
    while chunk := _read(inside):
        seen += chunk
    os.close(inside)
    assert running.wait(60) == 0
    assert b"refused" not in seen
    assert b"\\u001b]0;pwned\\u0007said" in seen
    assert b"\x1b]" not in seen


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # whoever had it is gone
        return b""


@needs_sandbox
def test_what_is_printed_is_not_endless_and_stops_nobody(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    prune(method(tmp_path, "for _ in range(400): print('x' * 9_999)"), PAGE, [0.5])
    said = capfd.readouterr().err
    assert 500_000 < len(said) < 1_200_000
    assert "more than" in said
