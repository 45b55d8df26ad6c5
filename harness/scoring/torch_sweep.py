"""The sweep in torch operations, for query tokens that lie on a GPU: the same nesting of budgets, the same float32.

One product a page and tile; per method one gather and maximum between the ends of two budgets. Tokens are summed by a
product with their query's column, because adding scattered numbers on a GPU comes out differently every time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from harness.scoring.queries import QueryTiles, Tile
from pruners.core.contract import Merged, Subset

GPU_TILE_TOKENS = 8192
"""Query tokens at a time: 1,024 page vectors x 8,192 tokens are 32 MB, whatever the number of queries."""


def score_page(vectors: torch.Tensor, results: Sequence[Subset | Merged], queries: QueryTiles) -> np.ndarray:
    """Scores `[1 + cells, queries]` of one page: the full page first, then every result's budgets in turn."""
    columns = [_score_tile(vectors, results, tile) for tile in queries.tiles]
    return torch.cat(columns, dim=1).cpu().numpy()


def _score_tile(vectors: torch.Tensor, results: Sequence[Subset | Merged], tile: Tile) -> torch.Tensor:
    device = tile.tokens.device
    similarity = vectors.to(device) @ tile.tokens
    rows = [similarity.amax(0)]
    for result in results:
        if isinstance(result, Subset):
            rows += _nested(similarity, torch.from_numpy(np.asarray(result.order)).to(device), result.counts)
        else:
            rows += [(part.to(device) @ tile.tokens).amax(0) for part in result.vectors]
    lengths = torch.from_numpy(np.diff(tile.offsets)).to(device)
    query_of = torch.repeat_interleave(torch.arange(len(lengths), device=device), lengths)
    asked = torch.stack(rows)[:, : len(query_of)]
    return asked @ torch.nn.functional.one_hot(query_of, len(lengths)).to(similarity.dtype)


def _nested(similarity: torch.Tensor, order: torch.Tensor, counts: Sequence[int]) -> list[torch.Tensor]:
    """The maxima over the first `counts` patches of an order, each from the one before it."""
    found: dict[int, torch.Tensor] = {}
    best, done = None, 0
    for count in sorted(set(counts)):
        step = similarity[order[done:count]].amax(0)
        best, done = step if best is None else torch.maximum(best, step), count
        found[count] = best
    return [found[count] for count in counts]
