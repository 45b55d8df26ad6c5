"""What a guest's process answers, and when: it has its time for the whole of it, and its words are made plain."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from pruners import prune, synthetic_page
from pruners.core.errors import PrunerError
from pruners.guests import process
from pruners.guests.guest import Guest, seconds_of_guests
from pruners.guests.host import host

PAGE = synthetic_page(4, 4)
on_linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")

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


@on_linux
def test_guests_end_when_they_are_given_up(tmp_path: Path) -> None:
    found = forging(
        tmp_path, "h['serial'] = -1; asked.clear(); import time; child.unpack = lambda data: time.sleep(99)"
    )
    pid = _pid(found)
    with pytest.raises(PrunerError, match="what it was not asked"):
        prune(found, PAGE, [0.5])
    _ended(pid)


@on_linux
def test_a_template_that_was_killed_is_started_again(tmp_path: Path) -> None:
    found = forging(tmp_path, "pass")
    pid = _pid(found)
    os.kill(_parent(pid), signal.SIGKILL)
    _ended(pid)
    with pytest.raises(PrunerError, match="ended without a word"):
        prune(found, PAGE, [0.5])
    assert len(prune(found, PAGE, [0.5]).kept(0)) == 8


@pytest.mark.slow
@on_linux
def test_a_template_that_was_stopped_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped, other = _parent(_pid(forging(tmp_path, "pass"))), tmp_path / "other"
    other.mkdir()
    os.kill(stopped, signal.SIGSTOP)
    try:
        monkeypatch.setattr(process, "STARTING", 1)
        with pytest.raises(PrunerError, match=r"forges.py: gave no answer in 1 seconds"):
            forging(other, "pass")
        monkeypatch.undo()
        assert len(prune(forging(other, "pass"), PAGE, [0.5]).kept(0)) == 8
    finally:
        os.kill(stopped, signal.SIGCONT)
    _ended(stopped)


def _pid(guest: Guest) -> int:
    return next(each.pid for (_, home), each in process._running.items() if home == guest.home)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _ended(pid: int) -> None:
    for _ in range(100):
        if not (stat := Path(f"/proc/{pid}/stat")).exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.1)
    raise AssertionError(f"process {pid} is still there")
