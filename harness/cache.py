"""Where things are kept that can be made again. Imports nothing heavy."""

from __future__ import annotations

import os
from pathlib import Path


def default_root() -> Path:
    """Where stores are kept unless told otherwise: `$PRUNEBOARD_STORES`, or the user's cache (`$XDG_CACHE_HOME`)."""
    if chosen := os.environ.get("PRUNEBOARD_STORES"):
        return Path(chosen)
    return user_cache() / "stores"


def user_cache() -> Path:
    """The project's folder in the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "")  # a relative one must be ignored, says the standard
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "pruneboard"
