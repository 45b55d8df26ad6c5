"""The catalogue of codecs, read without importing any, and the way from text to codecs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from . import plugins
from .errors import CatalogError
from .plugins import CatalogEntry

if TYPE_CHECKING:
    from .codec import Codec

GROUP = "pruneboard.codecs"
DEFAULT = "float16"


def codec_catalogue() -> dict[str, CatalogEntry]:
    """Every codec by name: built in, and of installed packages."""
    folder = Path(__file__).resolve().parents[1] / "codecs"
    built_in = plugins.scan_package("pruners.codecs", folder, ("codec",))
    return plugins.unique([*built_in, *plugins.scan_entry_points(GROUP, ("codec",))])


def read_codecs(text: str) -> list[Codec]:
    """Codecs from what a user typed: `int8`, `pq(parts=8)`, several with commas between them."""
    from . import expression

    if not text.strip():
        raise CatalogError("an empty text names no codec; `harness list codecs` shows what there is")
    return expression.read_codecs(text, codec_catalogue())
