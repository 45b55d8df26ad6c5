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
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from pruners.core.errors import CatalogError, ExpressionError, PruneBoardError, PrunerError
from pruners.core.learned_state import UnwritableError

from .frames import MOST, Arrays, FrameError, pack, unpack

SECONDS = 1800
"""How long a guest may take for one answer; calibration is one."""

LONGEST_ERROR = 4000
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
        with theirs:
            socket.send_fds(_requests(), [b"a guest"], [theirs.fileno()])
        self.line = Connection(ours.detach())
        self.line.send_bytes(_request(home))
        self.sent: set[str] = set()
        """States that it has."""
        self.serial = 0
        self.dead = False
        """Or out of step with us, which is the same."""
        self.pid = int(self._answer("a guest")[0]["pid"])

    def ask(self, asked: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> tuple[dict[str, Any], Arrays]:
        """Its answer; `PruneBoardError` with its own words if there is none."""
        self.serial += 1
        self.dead = True  # unless it answers: whoever is interrupted while waiting never reads the answer
        who = str(asked["who"])
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # reading then finds that it is dead
            self.line.send_bytes(pack({**asked, "serial": self.serial}, arrays))
        answer, found = self._answer(who)
        if answer.get("serial") != self.serial:
            raise FrameError(f"{who}: its process answers what it was not asked")
        self.dead = False
        if "error" in answer:
            kind = KINDS.get(str(answer.get("kind")), PrunerError)
            raise kind(str(answer["error"])[:LONGEST_ERROR])
        return answer, found

    def _answer(self, who: str) -> tuple[dict[str, Any], Arrays]:
        try:
            if not self.line.poll(SECONDS):
                os.kill(self.pid, signal.SIGKILL)
                raise PrunerError(f"{who}: gave no answer in {SECONDS // 60} minutes, and was ended")
            return unpack(self.line.recv_bytes(MOST))
        except (EOFError, ConnectionResetError) as error:
            raise PrunerError(
                f"{who}: its process ended without a word: a crash, `os._exit`, or too little memory"
            ) from error
        except OSError as error:
            raise FrameError(f"{who}: what its process sent cannot be read: {error}") from error


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
            process.line.close()
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
        )
        theirs.close()
        os.close(alive)
        _template = ours, here, os.getpid()
    return _template[0]
