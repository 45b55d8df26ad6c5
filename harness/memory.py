"""Memory that this process no longer uses goes back to the system.

The C library keeps what was freed for later. After a large piece of work that is a peak which the next one stands on.
"""

from __future__ import annotations

import ctypes
import sys


def give_back() -> None:
    """Where the C library can: glibc, on Linux. Elsewhere nothing happens."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)
