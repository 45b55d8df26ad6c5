"""A guest's process as seen from here: it is asked, and answers within a time, or it is dead."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pruners.core.errors import CatalogError, ExpressionError, PruneBoardError, PrunerError
from pruners.core.learned_state import UnwritableError
from pruners.core.plain_text import printable_lines

from .frames import LONGEST_ERROR, Arrays, FrameError, pack, unpack
from .line import GuestLine

SECONDS = 1800
"""How long a guest may take for one answer; calibration is one."""

STARTING = 300
"""How long a guest may take to start; the first one imports torch."""

CLOCK_ERROR = 0.1
"""Seconds by which a guest's clock and ours may differ."""

KINDS = {kind.__name__: kind for kind in (CatalogError, ExpressionError, PrunerError, UnwritableError)}
KEPT = re.compile(r"PATH|HOME|TMPDIR|TZ|LANG|LC_\w+|PYTHON\w*|NUMBA\w*|OMP\w*|MKL\w*|OPENBLAS\w*|LD_LIBRARY_PATH")
"""What of the environment a sandboxed method may know: a token of some hub is not among it."""


@dataclass(frozen=True)
class Home:
    """What guests share a process: those of one author, of which none sees queries, or all do."""

    sources: tuple[str, ...]
    """Files and packages that they come from; none: objects of this session."""
    diagnostic: bool = False
    readable: tuple[str, ...] | None = None
    """Files that it may read in a sandbox; None: it is in none."""


class Process:
    """One process. Made by `process_of`, which makes another when it died."""

    def __init__(self, home: Home) -> None:
        if not hasattr(os, "fork"):
            raise PruneBoardError("methods that are not built in need processes that fork: Linux or macOS")
        ours, theirs = socket.socketpair()
        prints, printed = (None, None) if home.readable is None else os.pipe()  # a sandbox has no terminal
        self.line = GuestLine(ours, prints)
        self.sent: set[str] = set()
        """States that it has."""
        self.serial = 0
        self.dead = True
        """Or out of step with us, which is the same."""
        self.pid, self.handle = 0, -1
        try:
            with theirs:
                _to_template([theirs.fileno()] + ([] if printed is None else [printed]))
            who = f"a process for {', '.join(home.sources) or 'methods of this session'}"
            self.pid = int(self._talk(_request(home), who, STARTING)[0]["pid"])
            with contextlib.suppress(AttributeError, OSError):  # not macOS, nor an old kernel
                self.handle = os.pidfd_open(self.pid)  # no other process is ever meant by it
            self.dead = False
        except PrunerError as error:
            if isinstance(error.__cause__, TimeoutError):
                _forget_template()  # it was stopped
            raise
        finally:
            if printed is not None:
                os.close(printed)
            if self.dead:
                self.end()

    def ask(self, asked: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> tuple[dict[str, Any], Arrays]:
        """Its answer; `PruneBoardError` with its own words if there is none."""
        self.serial += 1
        self.dead = True  # unless it answers: whoever is interrupted while waiting never reads the answer
        who, start = str(asked["who"]), time.monotonic()
        answer, found = self._talk(pack({**asked, "serial": self.serial}, arrays), who, SECONDS)
        if answer.get("serial") != self.serial:
            raise FrameError(f"{who}: its process answers what it was not asked")
        _check_seconds(answer.get("seconds"), time.monotonic() - start, who)
        self.dead = False
        if "error" in answer:
            kind = KINDS.get(str(answer.get("kind")), PrunerError)
            raise kind(printable_lines(answer["error"], LONGEST_ERROR))
        return answer, found

    def _talk(self, data: bytes, who: str, seconds: float) -> tuple[dict[str, Any], Arrays]:
        """Send a frame and receive one, all within so many seconds."""
        until = time.monotonic() + seconds
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # reading then finds that it is dead
                self.line.send(data, until)
            return unpack(self.line.receive(until))
        except TimeoutError as error:
            limit = f"{seconds // 60} minutes" if seconds >= 120 else f"{seconds} seconds"
            raise PrunerError(f"{who}: gave no answer in {limit}, and was ended") from error
        except (EOFError, ConnectionResetError) as error:
            raise PrunerError(
                f"{who}: its process ended without a word: a crash, `os._exit`, or too little memory"
            ) from error
        except OSError as error:
            raise FrameError(f"{who}: what its process sent cannot be read: {error}") from error
        except FrameError as error:
            raise FrameError(f"{who}: {error}") from error

    def end(self) -> None:
        """Whatever it does: nobody waits for it any more."""
        with contextlib.suppress(OSError):  # it may have ended by itself
            if self.handle >= 0:
                signal.pidfd_send_signal(self.handle, signal.SIGKILL)
                os.close(self.handle)
            elif self.pid:
                os.kill(self.pid, signal.SIGKILL)
        self.line.close()


def _check_seconds(seconds: Any, waited: float, who: str) -> None:
    """The time that a guest says it took must be one that fits into the time that we waited, on all cores at most:
    what all methods took is added up, and one that is no number would spoil the sum.
    """
    most = (waited + CLOCK_ERROR) * (os.cpu_count() or 1)
    if type(seconds) not in (int, float) or not 0 <= seconds <= most:
        raise FrameError(f"{who}: its process says that it took {seconds!r} seconds; we waited {waited:.3f}")


_running: dict[tuple[int, Home], Process] = {}
"""By the process that asks, too: what a forked worker inherits is its parent's."""


def ask(home: Home, state: bytes | None, key: str, asked: Mapping[str, Any], arrays: Arrays) -> tuple[dict, Arrays]:
    """Ask the process of a home, which is started if it is not there. It is sent `state` once, under `key`."""
    place = os.getpid(), home
    process = _running.get(place) or Process(home)
    _running[place] = process
    if state is not None and key not in process.sent:
        arrays = {**arrays, "state": np.frombuffer(state, np.uint8)}
        process.sent.add(key)
    try:
        return process.ask({**asked, "pruner": key}, arrays)
    finally:
        if process.dead:
            process.end()
            del _running[place]


_template: tuple[socket.socket, int, int] | None = None
"""The socket that takes requests, the pipe that says we are alive, the process that started it."""


def _request(home: Home) -> bytes:
    """What a new process must know before it is a guest."""
    request = {
        "path": [entry or os.getcwd() for entry in sys.path],
        "readable": None if home.readable is None else list(home.readable),
        "environment": dict(os.environ) if home.readable is None else {},
    }
    return json.dumps(request).encode()


def _to_template(files: list[int]) -> None:
    """Have a guest forked that talks through the first of open files, and prints to the second. A template that was
    killed is started again.
    """
    try:
        socket.send_fds(_requests(), [b"a guest"], files)
    except OSError:
        _forget_template()
        socket.send_fds(_requests(), [b"a guest"], files)


def _forget_template() -> None:
    """The next guest is of another one."""
    global _template
    if _template is not None:
        _template[0].close()
        os.close(_template[1])
    _template = None


def _requests() -> socket.socket:
    """Where the template listens; forked workers share it."""
    global _template
    if _template is None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        alive, here = os.pipe()
        path = [str(Path(__file__).resolve().parents[2]), *(entry for entry in sys.path if entry)]
        code = (
            f"import sys; sys.path[:] = {path!r}; from pruners.guests.template import main; "
            f"main({theirs.fileno()}, {alive})"
        )
        environment = {name: value for name, value in os.environ.items() if KEPT.fullmatch(name)}
        subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            pass_fds=(theirs.fileno(), alive),
            stdin=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # without our terminal: nobody in it can type there, and Ctrl-C is ours
        )
        theirs.close()
        os.close(alive)
        ours.settimeout(STARTING)
        _template = ours, here, os.getpid()
    return _template[0]
