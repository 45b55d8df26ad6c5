"""Hashes of a large corpus, kept in the user's cache: a million pages are read once, not by every command and worker.

A file counts as the same by its path, size and time of change. One that was changed a moment ago is not kept: it might
change again within the same tick of the clock. A small corpus is always read.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from harness.cache import user_cache
from harness.files import checksum, write_atomically
from pruners.core.errors import PruneBoardError

LARGE = 64 * 2**20
"""Bytes of a corpus from which on its hashes are kept; less is hashed in a moment."""
SETTLED = 2.0
"""Seconds since its last change."""


def is_large(files: Iterable[Path]) -> bool:
    return sum(path.stat().st_size for path in files) >= LARGE


def kept_hashes(path: Path, rows: int, make: Callable[[], list[str]]) -> list[str]:
    """The hash of each of a file's rows: as kept when it was last read, or made and kept."""
    now = path.stat()
    name = str(path.resolve())
    place = user_cache() / "hashes" / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.txt"
    state = f"{now.st_size} {now.st_mtime_ns} {name}"
    if (found := _read(place, state)) is not None and len(found) == rows:
        return found
    made = make()
    if time.time() - now.st_mtime > SETTLED:
        with suppress(OSError, PruneBoardError):  # a cache that cannot be written is none
            place.parent.mkdir(parents=True, exist_ok=True)
            text = "\n".join([state, *made])
            write_atomically(place, f"{checksum(text.encode())}\n{text}".encode())
    return made


def _read(place: Path, state: str) -> list[str] | None:
    """What is kept there of a file in this state; None if there is nothing, or it is damaged."""
    try:
        digest, _, text = place.read_text(encoding="utf-8").partition("\n")
    except (OSError, ValueError):
        return None
    before, *hashes = text.split("\n")
    return hashes if before == state and digest == checksum(text.encode()) else None
