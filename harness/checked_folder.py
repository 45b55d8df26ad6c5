"""A folder whose files are known by their checksums: what was not written here, or has changed since, is never read.

`checksums.txt` has a line for everything that was ever written, added before the file itself gets its name. So a
process may be killed between the two, and every older state of a file still counts as whole. A line begins with a
checksum of its own: one that was cut short or damaged counts as none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from filelock import Timeout

from harness.files import checksum, write_atomically
from harness.lock import acquired
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
            lock = acquired(self.folder / LOCK)
        except Timeout as error:
            raise PruneBoardError(f"another process is writing {self.folder}; wait for it") from error
        try:
            yield
        finally:
            lock.release()

    def write(self, name: str, data: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        digest = checksum(data)
        if digest not in self._known.setdefault(name, set()):
            with (self.folder / CHECKSUMS).open("a", encoding="utf-8") as file:
                file.write(f"\n{_line(digest, name)}")  # also after a line that was cut short
                file.flush()
                os.fsync(file.fileno())
            self._known[name].add(digest)
        write_atomically(path, data)

    def has(self, name: str) -> bool:
        """Whether the file is there, and was written here."""
        if not (self.folder / name).is_file():
            return False
        if name not in self._known and self._broken_lines:  # a line that was cut short has no file yet
            raise DamagedError(f"{self.folder / CHECKSUMS} is damaged: it may have named {name}. {self.way_out}")
        return name in self._known

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
        for line in self._lines:
            _, digest, name = line.split(" ", 2)
            found.setdefault(name, set()).add(digest)
        return found

    @cached_property
    def _lines(self) -> list[str]:
        """Those of the checksums that are whole."""
        return [line for line in self._all_lines if _is_whole(line)]

    @property
    def _broken_lines(self) -> bool:
        return len(self._lines) < len(self._all_lines)

    @cached_property
    def _all_lines(self) -> list[str]:
        path = self.folder / CHECKSUMS
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        return [line for line in text.split("\n") if line]


def _line(digest: str, name: str) -> str:
    return f"{_short(digest, name)} {digest} {name}"


def _is_whole(line: str) -> bool:
    parts = line.split(" ", 2)
    return len(parts) == 3 and parts[0] == _short(*parts[1:])


def _short(digest: str, name: str) -> str:
    return checksum(f"{digest} {name}".encode())[-8:]
