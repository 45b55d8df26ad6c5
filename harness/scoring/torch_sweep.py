"""The sweep in torch operations, for query tokens that lie on a GPU: the same nesting of budgets, the same float32.

A page and what methods made of it go to the GPU once. One product a page and tile; per method one gather and maximum
between the ends of two budgets. Groups become vectors, and tokens the sum of their query, by a product too, because
adding scattered numbers on a GPU comes out differently every time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from harness.scoring.queries import QueryTiles, Tile
from pruners.core.contract import Merged, Subset
from pruners.core.groups import Groups

GPU_TILE_TOKENS = 8192
"""Query tokens at a time: 1,024 page vectors x 8,192 tokens are 32 MB, whatever the number of queries."""

_Kept = tuple[torch.Tensor, tuple[int, ...]] | list[torch.Tensor]
"""A result on the device: an order and where each budget ends in it, or the vectors of each budget."""


def score_page(vectors: torch.Tensor, results: Sequence[Subset | Merged], queries: QueryTiles) -> np.ndarray:
    """Scores `[1 + cells, queries]` of one page: the full page first, then every result's budgets in turn."""
    device = queries.tiles[0].tokens.device
    page = vectors.to(device)
    kept = [_to_device(result, page) for result in results]
    return torch.cat([_score_tile(page, kept, tile) for tile in queries.tiles], dim=1).cpu().numpy()


def _to_device(result: Subset | Merged, page: torch.Tensor) -> _Kept:
    if isinstance(result, Subset):
        return torch.from_numpy(np.asarray(result.order)).to(page.device), result.counts
    return [_merge(part, page) if isinstance(part, Groups) else part.to(page.device) for part in result.parts]


def _merge(groups: Groups, page: torch.Tensor) -> torch.Tensor:
    """The merged vectors `[k, d]`: a product of who is in which group, times its scale, with the page."""
    labels = torch.from_numpy(groups.labels).to(page.device)
    patches = (labels >= 0).nonzero().flatten()
    share = page.new_zeros(len(groups), len(page))
    share[labels[patches], patches] = torch.from_numpy(groups.scales).to(page)[labels[patches]]
    return share @ page


def _score_tile(page: torch.Tensor, kept: Sequence[_Kept], tile: Tile) -> torch.Tensor:
    similarity = page @ tile.tokens
    rows = [similarity.amax(0)]
    for result in kept:
        if isinstance(result, tuple):
            rows += _nested(similarity, *result)
        else:
            rows += [(part @ tile.tokens).amax(0) for part in result]
    return torch.stack(rows)[:, : len(tile.query_of)] @ tile.query_of


def _nested(similarity: torch.Tensor, order: torch.Tensor, counts: Sequence[int]) -> list[torch.Tensor]:
    """The maxima over the first `counts` patches of an order, each from the one before it."""
    found: dict[int, torch.Tensor] = {}
    best, done = None, 0
    for count in sorted(set(counts)):
        step = similarity[order[done:count]].amax(0)
        best, done = step if best is None else torch.maximum(best, step), count
        found[count] = best
    return [found[count] for count in counts]
