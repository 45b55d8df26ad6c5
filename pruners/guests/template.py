"""The process that guests are forked from: it has torch and the built-in methods' code, and no data of ours.

Started once a process of ours, by `process.py`, which sends a socket and a home for each guest; forking takes a
hundredth of the time of importing torch. No method's code ever runs in the template itself.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import select
import signal
import socket
import sys
from multiprocessing.connection import Connection

import numpy as np
import torch

from pruners.core.groups import group

from . import child, sandbox

KERNELS = ("coverage", "groups", "kmeans", "rows", "tome", "trees", "voronoi")
"""Compiled code of built-in methods, which a method may use: imported here, where numba finds what it kept of it."""


def main(requests: int, alive: int) -> None:
    """Fork a guest for every request, until whoever started this is gone: `alive` is then closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to deal with
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for guests: what they have to say comes by socket
    for name in KERNELS:
        importlib.import_module(f"pruners.kernels.{name}")
    group(torch.ones(2, 2), np.zeros(2, int), 1, True)  # compiled, or read from the cache, once for all guests
    with socket.socket(fileno=requests) as calls:
        while True:
            ready, _, _ = select.select([calls.fileno(), alive], [], [])
            if alive in ready:
                return
            _, files, _, _ = socket.recv_fds(calls, 64, 2)
            template = os.getpid()
            if os.fork() == 0:
                calls.close()
                os.close(alive)
                _guest(template, *files)
            for file in files:
                os.close(file)


def _guest(template: int, place: int, prints: int | None = None) -> None:
    """Be a guest, and end. It talks through `place`, and prints to `prints`, if that is given."""
    try:
        _end_with(template)
        if prints is not None:
            os.dup2(prints, 2)
            os.close(prints)
        line = Connection(place)
        home = json.loads(line.recv_bytes())
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a method may wait for what it starts
        sys.path[:] = home["path"]
        if home["readable"] is None:
            os.environ.update(home["environment"])
        else:
            _without_caches()
            child.shut_in = True
            sandbox.enter(home["readable"])
        child.serve(line)
    except BaseException as error:
        print(f"a guest's process could not start: {error!r}", file=sys.stderr)
    finally:
        os._exit(0)


def _end_with(parent: int) -> None:
    """A template that is killed takes its guests along."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)


def _without_caches() -> None:
    """In a sandbox nothing can be written, so what numba compiles is not kept, and no error either."""
    from numba.core import caching, dispatcher

    sys.dont_write_bytecode = True
    sys.pycache_prefix = "/kept-nowhere"
    setattr(caching.Cache, "save_overload", lambda self, signature, data: None)  # noqa: B010
    setattr(dispatcher.Dispatcher, "enable_caching", lambda self: None)  # noqa: B010
