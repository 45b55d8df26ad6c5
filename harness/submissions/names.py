"""Names of folders, made from texts."""

from __future__ import annotations

import hashlib

MOST_NAME = 120


def slug(text: str) -> str:
    """A name that can be a folder; one that had to change ends with a hash, so that no two texts share a folder."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-=") else "_" for c in text).strip("_.-=")
    if plain == text and len(text) <= MOST_NAME:
        return text
    return f"{plain[: MOST_NAME - 9] or 'unnamed'}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
