"""Scoring that goes on where it was: what was counted of a data set so far lies in the run's folder until it is done.

Counts are written every minute, whole or not at all, with a checksum; beside them lies the file of what was kept, page
by page. Counts of other methods, data or code are not taken up, and neither are damaged ones: scoring begins anew.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from harness.files import checksum, temporary_files, write_atomically

EVERY = 60.0
"""Seconds from one time to the next: as much work is lost at most."""


class ScoringState:
    """Of one data set: arrays by their names, in a file that only who has the same `key` reads."""

    def __init__(self, path: Path, key: str) -> None:
        self.path, self.key = path, key
        self.kept = path.with_name(f"{path.name}.kept")
        """Where what was kept is noted."""
        self._written = time.monotonic()

    @property
    def due(self) -> bool:
        return time.monotonic() - self._written >= EVERY

    def write(self, arrays: Mapping[str, np.ndarray]) -> None:
        """After what was kept is on the disk: a machine may stop between the two."""
        with self.kept.open("rb") as file:
            os.fsync(file.fileno())
        packed = io.BytesIO()
        named: dict[str, Any] = {"key": np.array(self.key), **arrays}
        np.savez(packed, **named)
        write_atomically(self.path, f"{checksum(packed.getvalue())}\n".encode() + packed.getvalue())
        self._written = time.monotonic()

    @property
    def there(self) -> bool:
        """Whether anything was written, by whomever."""
        return self.path.is_file() and self.kept.is_file()

    def read(self) -> dict[str, np.ndarray] | None:
        """What was written; None if there is nothing that can be gone on with."""
        if not self.there:
            return None
        digest, _, data = self.path.read_bytes().partition(b"\n")
        if checksum(data).encode() != digest:
            return None
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = dict(file)
        return arrays if str(arrays.pop("key")) == self.key else None

    def remove(self) -> None:
        """Also what a process left that was killed while it wrote."""
        for path in (self.path, self.kept, *temporary_files(self.path.parent, [self.path.name])):
            path.unlink(missing_ok=True)
