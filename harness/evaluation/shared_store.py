"""A store as another machine finds it: by its folder, which every node must see, and by what must lie there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.files import file_checksum
from harness.store.format import MANIFEST, StoreError
from harness.store.reader import Store


@dataclass(frozen=True)
class SharedStore:
    """What is sent instead of a store."""

    folder: Path
    manifest: str
    """The checksum of its manifest, which has those of all its files."""

    @classmethod
    def of(cls, store: Any) -> Any:
        """What is sent of a store; one that is made up as it is read goes as it is."""
        if not isinstance(store, Store):
            return store
        folder = store.folder.absolute()
        return cls(folder, file_checksum(folder / MANIFEST))

    @staticmethod
    def open(sent: Any) -> Any:
        """The store that was meant, where this process runs."""
        return sent._open() if isinstance(sent, SharedStore) else sent

    def _open(self) -> Store:
        if not (self.folder / MANIFEST).is_file():
            raise StoreError(f"there is no store {self.folder}; keep stores in a folder that every node sees (--store)")
        if file_checksum(self.folder / MANIFEST) != self.manifest:
            raise StoreError(
                f"{self.folder} is another version of the store than where the work was begun: its manifest differs. "
                "Keep stores in one folder that every node sees (--store), or copy this one again"
            )
        return Store(self.folder)
