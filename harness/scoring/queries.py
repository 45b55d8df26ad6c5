"""All query vectors of a benchmark as one matrix, cut into tiles of whole queries that fit into a core's cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

from pruners.core.errors import PruneBoardError

TILE_TOKENS = 160
"""Query tokens multiplied at a time: 1,024 page vectors x 160 tokens are 640 KB, which a second-level cache holds."""
TILE_NUMBERS = 1024 * TILE_TOKENS
MOST_TILE_TOKENS = 1024  # beyond that, short pages gain nothing more (measured)
LINE = 16  # float32 numbers in a cache line


@dataclass(frozen=True)
class Tile:
    """Queries `[first, last)`: their tokens `[d, tokens]`, and where each query's tokens begin and end.

    Columns of zeros, which belong to no query, fill the last cache line of a row of similarities.
    """

    first: int
    last: int
    tokens: torch.Tensor
    offsets: np.ndarray

    @cached_property
    def query_of(self) -> torch.Tensor:
        """`[tokens, queries]`: 1 where a token belongs to a query. A product with it adds up each query's tokens."""
        lengths = torch.from_numpy(np.diff(self.offsets)).to(self.tokens.device)
        owner = torch.repeat_interleave(torch.arange(len(lengths), device=self.tokens.device), lengths)
        return torch.nn.functional.one_hot(owner, len(lengths)).to(self.tokens.dtype)


@dataclass(frozen=True)
class QueryTiles:
    """The queries of a benchmark, in order."""

    tiles: tuple[Tile, ...]

    @property
    def on_gpu(self) -> bool:
        return bool(self.tiles) and self.tiles[0].tokens.device.type != "cpu"

    def __len__(self) -> int:
        return self.tiles[-1].last if self.tiles else 0

    def changed(self, change: Callable[[np.ndarray], np.ndarray]) -> QueryTiles:
        """The same queries after `change` of their vectors `[tokens, d]`, as a codec compares them."""
        made = [
            torch.from_numpy(np.ascontiguousarray(change(tile.tokens.T.cpu().numpy()).T, np.float32))
            for tile in self.tiles
        ]
        return QueryTiles(
            tuple(replace(tile, tokens=new.to(tile.tokens.device)) for tile, new in zip(self.tiles, made, strict=True))
        )


def tile_tokens(page_vectors: float) -> int:
    """Query tokens of a tile for pages of so many vectors: shorter pages take more tokens at a time."""
    return min(MOST_TILE_TOKENS, max(TILE_TOKENS, int(TILE_NUMBERS / page_vectors)))


def tile_queries(
    queries: Sequence[torch.Tensor], tile_tokens: int = TILE_TOKENS, device: torch.device | str = "cpu"
) -> QueryTiles:
    """Cut queries `[tokens, d]` into tiles of at most `tile_tokens` tokens, or of a single longer query."""
    for i, query in enumerate(queries):
        if query.ndim != 2 or len(query) == 0:
            raise PruneBoardError(f"query {i} has no vectors: its shape is {list(query.shape)}")
    tiles, first = [], 0
    while first < len(queries):
        last, tokens = first + 1, len(queries[first])
        while last < len(queries) and tokens + len(queries[last]) <= tile_tokens:
            tokens += len(queries[last])
            last += 1
        chosen = torch.cat([query.float() for query in queries[first:last]])
        filled = torch.nn.functional.pad(chosen, (0, 0, 0, -tokens % LINE))
        offsets = np.cumsum([0, *(len(query) for query in queries[first:last])])
        tiles.append(Tile(first, last, filled.T.contiguous().to(device), offsets))
        first = last
    return QueryTiles(tuple(tiles))
