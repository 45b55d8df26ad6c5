"""Parts of a store, for several processes or machines at once, and the locks that keep two from doing the same.

A part is a range of shards. Nothing is locked for writing, because no two parts share a file; a lock only refuses to
start the same part, or one that overlaps it, a second time. It dies with its process, however that ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from harness.lock import acquired
from harness.store.format import StoreError

GATE = ".store.lock"
"""Held for a moment, while a store is begun or finished."""
PATIENCE = 600
_LOCK = re.compile(r"\.part-(\d+)-of-(\d+)\.lock")


@dataclass(frozen=True)
class Part:
    """The `number`-th of `of` parts, counted from 1."""

    number: int = 1
    of: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.of:
            raise StoreError(f"there is no part {self}; parts of {self.of} are 1/{self.of} to {self.of}/{self.of}")

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> Part:
        match = re.fullmatch(r"(\d{1,6})/([1-9]\d{0,5})", text.strip())
        if match is None:
            raise StoreError(f"{text!r} is no part; write 3/8 for the third of eight")
        return cls(int(match[1]), int(match[2]))

    def shards(self, count: int) -> range:
        """Its share of `count` shards. The first part has one at least: it also writes the queries."""
        return range(-(-(self.number - 1) * count // self.of), -(-self.number * count // self.of))

    @property
    def lock(self) -> str:
        return f".part-{self.number}-of-{self.of}.lock"


WHOLE = Part()


@contextmanager
def gate(folder: Path) -> Iterator[None]:
    """One process at a time begins, mends or finishes a store. Where the file system has no locks, a file that says so
    stands for one: this must not be done twice at once.
    """
    try:
        with FileLock(folder / GATE, timeout=PATIENCE):
            yield
    except Timeout as error:
        raise StoreError(
            f"another process has been beginning or finishing {folder} for {PATIENCE} s: end it, or, if there is none "
            f"on any machine, delete {folder / GATE}"
        ) from error


def take(folder: Path, part: Part, shards: int) -> FileLock:
    """The lock of a part, or an error if another process works on some of the same shards. Only behind the gate."""
    mine = part.shards(shards)
    for path in sorted(folder.glob(".part-*.lock")):
        match = _LOCK.fullmatch(path.name)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            continue
        other = Part(int(match[1]), int(match[2]))
        theirs = other.shards(shards)
        if other != part and max(mine.start, theirs.start) < min(mine.stop, theirs.stop):
            _lock(folder, other).release()
    return _lock(folder, part)


def _lock(folder: Path, part: Part) -> FileLock:
    try:
        return acquired(folder / part.lock)
    except Timeout as error:
        what = "the store" if part == WHOLE else f"part {part} of the store"
        raise StoreError(f"another process is writing {what} {folder}; wait for it") from error


def remove_locks(folder: Path) -> None:
    """Of a finished store, which needs none; one that is held by a process at its end is no harm."""
    for path in [folder / GATE, *folder.glob(".part-*.lock")]:
        with suppress(FileNotFoundError):
            path.unlink()
