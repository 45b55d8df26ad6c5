"""How wide vectors are as they are scanned: a codec may have shortened them."""

from __future__ import annotations

from harness.submissions.size_checks import read_codec


def scanned_width(stored: str, dim: int | None) -> int | None:
    """Numbers of a decoded vector, of a codec by its text; in any other form vectors are as wide as the backbone's."""
    codec = read_codec(stored) if dim is not None else None
    return codec.width(dim) if codec is not None and dim is not None else dim
