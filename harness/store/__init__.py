"""The store: what was encoded, on disk. `StoreWriter` makes one from any source of vectors, `Store` reads it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.store.format import StoreError
    from harness.store.reader import Store
    from harness.store.writer import StoreWriter

__all__ = ["Store", "StoreError", "StoreWriter"]
_HOMES = {"Store": "reader", "StoreError": "format", "StoreWriter": "writer"}


def __getattr__(name: str) -> Any:
    """Loaded on first use: who only writes files as a store does must not pay for the import of torch."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
