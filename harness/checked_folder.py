"""A folder whose files are known by their checksums: what was not written here, or has changed since, is never read.

`checksums.txt` has a line for everything that was ever written, added before the file itself gets its name. So a
process may be killed between the two, and every older state of a file still counts as whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from filelock import FileLock, Timeout

from harness.files import checksum, write_atomically
from pruners.core.errors import PruneBoardError

CHECKSUMS = "checksums.txt"
LOCK = ".lock"


class DamagedError(PruneBoardError):
    """A file is not what was written."""


class CheckedFolder:
    """Files by their names below `folder`."""

    def __init__(self, folder: Path, way_out: str) -> None:
        self.folder = folder
        self.way_out = way_out
        """What a user does about a damaged file."""

    @contextmanager
    def one_writer(self) -> Iterator[None]:
        """Nobody else writes while this block runs."""
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.folder / LOCK, blocking=False):
                yield
        except Timeout as error:
            raise PruneBoardError(f"another process is writing {self.folder}; wait for it") from error

    def write(self, name: str, data: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        digest = checksum(data)
        if digest not in self._known.setdefault(name, set()):
            with (self.folder / CHECKSUMS).open("a", encoding="utf-8") as file:
                file.write(f"\n{digest} {name}")  # also after a line that was cut short
                file.flush()
                os.fsync(file.fileno())
            self._known[name].add(digest)
        write_atomically(path, data)

    def has(self, name: str) -> bool:
        """Whether the file is there, and was written here."""
        return name in self._known and (self.folder / name).is_file()

    def read(self, name: str) -> bytes:
        """A file that `has` says is there."""
        data = (self.folder / name).read_bytes()
        if checksum(data) not in self._known.get(name, ()):
            raise DamagedError(
                f"{self.folder / name} is not what was written: it is damaged, or was edited. {self.way_out}"
            )
        return data

    def remove(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)

    @cached_property
    def _known(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        path = self.folder / CHECKSUMS
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        for line in text.splitlines():
            digest, _, name = line.partition(" ")
            found.setdefault(name, set()).add(digest)
        return found
