"""Reading an index: vectors as a search finds them, and an exact search over all pages.

The search is plain and exact: what an engine finds with the same vectors can be compared with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from harness.page_index.files import FORMAT, INDEX, LEARNED, SHARD, IndexFile, checked, shard_name, shard_names
from harness.runs.restore import codec_from
from pruners.core.errors import PruneBoardError


class PageIndex:
    """A finished index. `index.vectors(page)` are a page's vectors, `index.search(query)` the best pages of a query."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        files = checked(self.folder)
        if not files.has(INDEX):
            raise PruneBoardError(
                f"{self.folder} is no finished index: it has no {INDEX}. `harness index` makes one, or goes on with it"
            )
        self.facts: dict[str, Any] = json.loads(files.read(INDEX))
        """What it is: method, budget, codec, backbone, pages, vectors, bytes."""
        if self.facts["format"] != FORMAT:
            raise PruneBoardError(f"{self.folder} is of format {self.facts['format']}; this release reads {FORMAT}")
        learned = files.read(LEARNED) if files.has(LEARNED) else None
        self.codec = codec_from(self.facts["codec"], learned)
        self.dim: int = self.facts["dim"]

    def __len__(self) -> int:
        return self.facts["pages"]

    @cached_property
    def page_ids(self) -> tuple[str, ...]:
        return tuple(page for shard in self._shards() for page in shard.ids)

    @property
    def bytes(self) -> int:
        """Codes of all pages, and what they share."""
        return self.facts["bytes"] + self.facts["shared_bytes"]

    def vectors(self, page: int | str) -> np.ndarray:
        """A page's vectors `[kept, d]` in float32, decoded; pages are named by place or id."""
        if isinstance(page, str) and page not in self._places:
            raise PruneBoardError(f"{self.folder} has no page {page!r}")
        at = self._places[page] if isinstance(page, str) else page
        if not 0 <= at < len(self):
            raise IndexError(f"page {at} of an index of {len(self)}")
        shard = IndexFile(self.folder / shard_name(at // SHARD))
        return self._decoded(shard.codes(*shard.offsets[at % SHARD : at % SHARD + 2].tolist()))

    def search(self, query: Any, most: int = 10) -> list[tuple[str, float]]:
        """The best pages of a query's vectors `[tokens, d]` by exact MaxSim in float32; equal ones by descending id."""
        tokens = np.asarray(query, np.float32)
        if tokens.ndim != 2 or tokens.shape[1] != self.dim:
            raise PruneBoardError(f"a query is [tokens, {self.dim}] here, not {list(tokens.shape)}")
        asked = np.ascontiguousarray(self.codec.query(tokens), np.float32)
        best: list[tuple[float, str]] = []
        for shard in self._shards():
            vectors = self._decoded(shard.codes(0, int(shard.offsets[-1])))
            scores = np.maximum.reduceat(asked @ vectors.T, shard.offsets[:-1], axis=1).sum(0)
            best = sorted([*best, *zip(scores.tolist(), shard.ids, strict=True)], reverse=True)[:most]
        return [(page, score) for score, page in best]

    def verify(self) -> None:
        """Read everything and compare checksums; an error names a damaged file."""
        files = checked(self.folder)
        for name in shard_names(len(self)):
            files.read(name)

    def _shards(self) -> Iterator[IndexFile]:
        return (IndexFile(self.folder / name) for name in shard_names(len(self)))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {page: at for at, page in enumerate(self.page_ids)}

    def _decoded(self, codes: np.ndarray) -> np.ndarray:
        return self.codec.unpack(np.ascontiguousarray(codes).tobytes(), self.dim)

    def __repr__(self) -> str:
        what = f"{self.facts['method']} at {self.facts['budget']:g}"
        return f"<PageIndex of {len(self)} pages, {what}, {self.bytes / 1e6:.3g} MB: {self.folder}>"
