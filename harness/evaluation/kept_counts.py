"""How many vectors each cell keeps of each page: the one thing of an evaluation that is as long as the corpus.

It lies in a file without a name, in the folder for temporary files, so that a million pages take no more memory than
ten thousand. When a method's result is written, it is read back a row at a time.
"""

from __future__ import annotations

import errno
import os
import tempfile
from dataclasses import dataclass

import numpy as np

BLOCK = 4096  # pages read at once


class KeptCounts:
    """A table `[cells, pages]` on disk, whose columns are written in any order. Pages never written have zeros."""

    def __init__(self, cells: int, pages: int) -> None:
        self.cells, self.pages = cells, pages
        self._file = tempfile.TemporaryFile(prefix="pruneboard-", buffering=0)  # noqa: SIM115 (closed with the table)
        self._file.truncate(pages * self._width)

    @property
    def _width(self) -> int:
        """Bytes of a page, which lie together: pages come in blocks."""
        return self.cells * np.dtype(np.int32).itemsize

    def put(self, pages: np.ndarray, kept: np.ndarray) -> None:
        """Note what was `kept [cells, pages]` of some pages."""
        columns = np.ascontiguousarray(kept.T, np.int32)
        for run in np.split(np.arange(len(pages)), np.flatnonzero(np.diff(pages) != 1) + 1):
            data = columns[run].tobytes()
            if os.pwrite(self._file.fileno(), data, int(pages[run[0]]) * self._width) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), tempfile.gettempdir())

    def row(self, cell: int) -> np.ndarray:
        """Kept at a cell of every page."""
        found = np.empty(self.pages, np.int32)
        for start in range(0, self.pages, BLOCK):
            data = os.pread(self._file.fileno(), BLOCK * self._width, start * self._width)
            found[start : start + BLOCK] = np.frombuffer(data, np.int32)[cell :: self.cells]
        return found


@dataclass(frozen=True)
class KeptRows:
    """What a method kept, as an array `[trials, budgets, pages]` of which a row is read when it is asked for."""

    table: KeptCounts
    cells: np.ndarray
    """Of the table, `[trials, budgets]`."""

    @property
    def shape(self) -> tuple[int, int, int]:
        trials, budgets = self.cells.shape
        return trials, budgets, self.table.pages

    def __getitem__(self, at: tuple[int, int]) -> np.ndarray:
        """Of every page, at a trial and a budget."""
        return self.table.row(int(self.cells[at]))
