"""Codecs: how each vector of an index is stored, after a pruner chose which ones there are.

Every file beside this one holds a codec or a small family of them and is found by itself, as pruners are. Codecs are
names here too, as `harness list codecs` shows them: `from pruners.codecs import int8`.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        from pruners.core import codec_catalog, plugins

        if name in (known := codec_catalog.codec_catalogue()):
            return plugins.load(known[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from pruners.core import codec_catalog

    return sorted(codec_catalog.codec_catalogue())
