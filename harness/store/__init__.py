"""The store: what was encoded, on disk. `StoreWriter` makes one from any source of vectors, `Store` reads it."""

from harness.store.format import StoreError
from harness.store.reader import Store
from harness.store.writer import StoreWriter

__all__ = ["Store", "StoreError", "StoreWriter"]
