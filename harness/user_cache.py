"""Where the project keeps what it can make again."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path:
    """The project's folder in the user's cache (`$XDG_CACHE_HOME`)."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "")  # a relative one must be ignored, says the standard
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "pruneboard"
