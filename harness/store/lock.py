"""One writer a store: an advisory lock on the folder itself, which leaves no file behind and dies with the process."""

from __future__ import annotations

import os
from pathlib import Path

from harness.store.format import StoreError

try:
    import fcntl
except ImportError:  # Windows: no advisory lock on folders; two writers at once are then the user's care
    fcntl = None  # type: ignore[assignment]


_held: set[int] = set()


def _let_go() -> None:
    """A forked process shares its parent's descriptors, and with them its locks: the lock would outlive the parent."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


class FolderLock:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._descriptor: int | None = None

    def acquire(self) -> None:
        if fcntl is None:
            return
        self._descriptor = os.open(self.folder, os.O_RDONLY)
        _held.add(self._descriptor)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.release()
            raise StoreError(f"another process is writing the store {self.folder}; wait for it") from error

    def release(self) -> None:
        if self._descriptor in _held:
            _held.discard(self._descriptor)
            os.close(self._descriptor)
        self._descriptor = None
