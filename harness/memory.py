"""Memory of this process: what it no longer uses goes back to the system, and how much it had at most."""

from __future__ import annotations

import ctypes
import resource
import sys
from pathlib import Path


def give_back() -> None:
    """What was freed, and the C library keeps for later: after a large piece of work, the next one would stand on it.

    Only glibc on Linux can; elsewhere nothing happens.
    """
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)


def peak_mb() -> float:
    """The most that this process had."""
    if sys.platform == "linux":  # `getrusage` also counts what the process had that started this one
        status = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024
    return _used(resource.RUSAGE_SELF)


def peak_mb_of_children() -> float:
    """The most that one of the processes had that this one started, and that ended."""
    return _used(resource.RUSAGE_CHILDREN)


def _used(who: int) -> float:
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes
    return resource.getrusage(who).ru_maxrss * unit / 2**20
