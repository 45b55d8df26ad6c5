"""How many vectors each cell keeps of each page: the one thing of an evaluation that is as long as the corpus.

It lies in a file, so that a million pages take no more memory than ten thousand. When a method's result is written, it
is read back a row at a time.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

BLOCK = 4096  # pages read at once


class KeptCounts:
    """A table `[cells, pages]` on disk, whose columns are written in any order. Pages never written have zeros."""

    def __init__(self, cells: int, pages: int, path: Path | None = None) -> None:
        """In the file at `path`, as it is there or new; None: in one without a name, in the folder for such files."""
        self.cells, self.pages, self.path = cells, pages, path
        # closed with the table
        if path is None:
            self._file = tempfile.TemporaryFile(prefix="pruneboard-", buffering=0)  # noqa: SIM115
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0)
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
            try:
                written = os.pwrite(self._file.fileno(), data, int(pages[run[0]]) * self._width)
            except OSError as error:
                raise self._named(error.errno or errno.EIO) from error
            if written < len(data):
                raise self._named(errno.ENOSPC)

    def rows(self, cells: Sequence[int]) -> np.ndarray:
        """Kept at some cells of every page, `[cells, pages]`, in one pass over the file."""
        found = np.empty((len(cells), self.pages), np.int32)
        for start, columns in self._blocks():
            found[:, start : start + BLOCK] = columns[:, cells].T
        return found

    def totals(self, pages: np.ndarray) -> np.ndarray:
        """Kept at each cell, of the pages that are `True`."""
        found = np.zeros(self.cells, np.int64)
        for start, columns in self._blocks():
            found += columns[pages[start : start + BLOCK]].sum(0)
        return found

    def _blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Some pages after the other: the first of them, and what was kept `[pages, cells]`."""
        for start in range(0, self.pages, BLOCK):
            data = os.pread(self._file.fileno(), BLOCK * self._width, start * self._width)
            yield start, np.frombuffer(data, np.int32).reshape(-1, self.cells)

    def _named(self, number: int) -> OSError:
        """An error that says where the file is, which is as long as the corpus."""
        return OSError(number, os.strerror(number), str(self.path or tempfile.gettempdir()))


@dataclass(frozen=True)
class KeptRows:
    """What a method kept, as an array `[trials, budgets, pages]` of which rows are read when they are asked for."""

    table: KeptCounts
    cells: np.ndarray
    """Of the table, `[trials, budgets]`."""

    @property
    def shape(self) -> tuple[int, int, int]:
        trials, budgets = self.cells.shape
        return trials, budgets, self.table.pages

    def __getitem__(self, at: tuple[int, int]) -> np.ndarray:
        """Of every page, at a trial and a budget."""
        return self.rows([at])[0]

    def rows(self, ats: Sequence[tuple[int, int]]) -> np.ndarray:
        """Of every page, at several trials and budgets."""
        return self.table.rows([int(self.cells[at]) for at in ats])
