"""How many vectors each cell keeps of each page: the one thing of an evaluation that is as long as the corpus.

It lies in a file without a name, in the folder for temporary files, so that a million pages take no more memory than
ten thousand; what a method kept is read back when its result is written.
"""

from __future__ import annotations

import errno
import os
import tempfile

import numpy as np

BLOCK = 4096  # pages read at once


class KeptCounts:
    """A table `[cells, pages]` on disk, whose columns are written in any order. Pages never written have zeros."""

    def __init__(self, cells: int, pages: int) -> None:
        self.cells, self.pages = cells, pages
        self._file = tempfile.TemporaryFile(prefix="pruneboard-", buffering=0)  # noqa: SIM115 (closed with the table)
        self._file.truncate(pages * self._row)

    @property
    def _row(self) -> int:
        """Bytes of a page, which lie together: pages come in blocks."""
        return self.cells * np.dtype(np.int32).itemsize

    def put(self, pages: np.ndarray, kept: np.ndarray) -> None:
        """Note what was `kept [cells, pages]` of some pages."""
        rows = np.ascontiguousarray(kept.T, np.int32)
        for run in np.split(np.arange(len(pages)), np.flatnonzero(np.diff(pages) != 1) + 1):
            data = rows[run].tobytes()
            if os.pwrite(self._file.fileno(), data, int(pages[run[0]]) * self._row) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), tempfile.gettempdir())

    def of(self, cells: np.ndarray) -> np.ndarray:
        """Kept at some cells of every page, `[*cells, pages]`."""
        found = np.empty((cells.size, self.pages), np.int32)
        for start in range(0, self.pages, BLOCK):
            data = os.pread(self._file.fileno(), BLOCK * self._row, start * self._row)
            rows = np.frombuffer(data, np.int32).reshape(-1, self.cells)
            found[:, start : start + BLOCK] = rows[:, cells.ravel()].T
        return found.reshape(*cells.shape, self.pages)
