"""Ways out of the sandbox that methods of others have tried: each is shut, and what honest methods do works."""

from __future__ import annotations

import os
import pty
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from pruners import prune, synthetic_page
from pruners.core.errors import CatalogError, ExpressionError, PrunerError
from pruners.guests import process, sandbox
from pruners.guests.guest import Guest
from pruners.guests.host import Isolation, host

needs_sandbox = pytest.mark.skipif(sandbox.missing() is not None, reason=str(sandbox.missing()))
PAGE = synthetic_page(4, 4)
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


@needs_sandbox
def test_a_sandboxed_method_has_no_terminal(tmp_path: Path) -> None:
    """What it prints is shown, but in plain characters; it can neither type nor open the terminal."""
    what = "import sys; print('\\x1b]0;pwned\\x07said', flush=True); assert not any(map(os.isatty, range(3)))"
    method(tmp_path, what)
    (tmp_path / "run.py").write_text(TYPES)
    inside, outside = pty.openpty()
    root = str(Path(sandbox.__file__).parents[2])
    command = [sys.executable, str(tmp_path / "run.py"), str(tmp_path / "tries.py")]
    running = subprocess.Popen(
        command, stdin=outside, stdout=outside, stderr=outside, env={**os.environ, "PYTHONPATH": root}
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


ANSWERS = """
from pruners import scorer
import pruners.guests.child as child

original = child._answer

def forged(asked, arrays):
    h, found = original(asked, arrays)
    if asked["do"] == "prune":
        CHANGE
    return h, found

child._answer = forged

@scorer("forges")
def forges(page):
    return page.vectors[:, 0]
"""


def forging(folder: Path, change: str) -> Guest:
    (folder / "forges.py").write_text(ANSWERS.replace("CHANGE", change))
    ((found, _),) = host([str(folder / "forges.py")])
    assert isinstance(found, Guest)
    return found


@pytest.mark.parametrize("seconds", ["float('nan')", "-1.0", "1e6", "float('inf')", "'1'", "None", "True"])
def test_seconds_that_no_clock_shows_are_that_methods_failure(tmp_path: Path, seconds: str) -> None:
    from pruners.guests.guest import seconds_of_guests

    before = seconds_of_guests()
    with pytest.raises(PrunerError, match="seconds"):
        prune(forging(tmp_path, f"h['seconds'] = {seconds}"), PAGE, [0.5])
    assert seconds_of_guests() == before


def test_an_error_is_told_in_plain_characters(tmp_path: Path) -> None:
    with pytest.raises(PrunerError) as caught:
        prune(forging(tmp_path, "h['error'] = '\\x1b]0;pwned\\x07' + 'x' * 100_000"), PAGE, [0.5])
    assert "\x1b" not in str(caught.value)
    assert "\\u001b]0;pwned" in str(caught.value)
    assert len(str(caught.value)) < 5000


@pytest.mark.parametrize(
    "change",
    [
        "import os, time; os.write(LINE, b'\\0\\x10\\0\\0'); time.sleep(60)",
        "import os, time\n        while True: os.write(LINE, b'\\1'); time.sleep(0.3)",
        "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
    ],
)
def test_the_limit_is_over_the_whole_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    line = "[int(n) for n in os.listdir('/proc/self/fd') if 'socket' in os.path.realpath(f'/proc/self/fd/{n}')][0]"
    found = forging(tmp_path, change.replace("LINE", line))
    monkeypatch.setattr(process, "SECONDS", 2)
    start = time.monotonic()
    with pytest.raises(PrunerError, match="gave no answer in 2 seconds, and was ended"):
        prune(found, PAGE, [0.5])
    assert time.monotonic() - start < 20


def test_the_limit_is_over_the_question_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that never reads what it is sent stops nobody."""
    found = forging(tmp_path, "import time, pruners.guests.child as child; child.unpack = lambda data: time.sleep(99)")
    prune(found, PAGE, [0.5])
    monkeypatch.setattr(process, "SECONDS", 2)
    with pytest.raises(PrunerError, match="gave no answer"):
        prune(found, synthetic_page(64, 64), [0.5])


def test_guests_end_when_they_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = forging(tmp_path, "h['serial'] = -1")
    ours = next(each for (_, home), each in process._running.items() if home == found.home)
    with pytest.raises(PrunerError, match="what it was not asked"):
        prune(found, PAGE, [0.5])
    _ended(ours.pid)


def test_a_template_that_was_killed_is_started_again(tmp_path: Path) -> None:
    found = forging(tmp_path, "pass")
    ours = next(each for (_, home), each in process._running.items() if home == found.home)
    os.kill(_parent(ours.pid), signal.SIGKILL)
    _ended(ours.pid)
    with pytest.raises(PrunerError, match="ended without a word"):
        prune(found, PAGE, [0.5])
    assert len(prune(found, PAGE, [0.5]).kept(0)) == 8


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _ended(pid: int) -> None:
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists():
            return
        time.sleep(0.1)
    raise AssertionError(f"process {pid} is still there")
