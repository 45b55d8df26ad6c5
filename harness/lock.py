"""Locks on files that die with their process, however it ends.

Where a file system has none (Lustre that was mounted without `flock`) nothing is locked: a lock that outlives its
process would keep out whoever goes on with its work.
"""

from __future__ import annotations

import errno
from pathlib import Path

from filelock import FileLock

NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
"""What systems say where a file system has no locks."""


def acquired(path: Path, timeout: float = 0) -> FileLock:
    """The lock on a file, taken; whoever is done with it calls `release()`. Raises `filelock.Timeout` if another
    process has it for so many seconds (below 0: waits for ever).
    """
    lock = FileLock(path, timeout=timeout, fallback_to_soft=False)
    try:
        lock.acquire()
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
    return lock
