"""Pooling by place: means over rows or square tiles of the patch grid.

Reference: Yeroyan 2026, "Visual RAG Toolkit" (arXiv 2602.12510), and Qdrant's row-mean recipe for ColPali. A grid
allows few numbers of vectors, so a budget snaps to the largest of them that does not exceed it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from pruners import Page, PruneBoardError, Reducer, keep_count, reducer, unit
from pruners.core.groups import group


@reducer("row_pool", needs=("grid",), budget="snapped", paper="Yeroyan 2026, Visual RAG Toolkit, arXiv 2602.12510")
@dataclass(frozen=True)
class RowPool(Reducer):
    """Means over bands of rows; above one vector a row, over equal pieces of each row.

    Formula:
        v_{b} = mean of e_{i} over band b of the grid's rows
    """

    smooth: int = 1  # an odd number of neighbouring bands averaged into each vector; 1: none
    renormalize: bool = True

    def __post_init__(self) -> None:
        if self.smooth < 1 or self.smooth % 2 == 0:
            raise PruneBoardError(f"smooth is an odd number of bands, not {self.smooth}")

    def count(self, page: Page, budget: float) -> int:
        rows, cols = _grid(page)
        k = keep_count(budget, len(page))
        return k if k <= rows else rows * min(cols, k // rows)

    def reduce(self, page: Page, k: int) -> np.ndarray | torch.Tensor:
        rows, cols = _grid(page)
        bands, pieces = (k, 1) if k <= rows else (rows, k // rows)
        row, col = np.arange(rows) * bands // rows, np.arange(cols) * pieces // cols
        labels = (row[:, None] * pieces + col[None, :]).ravel()
        if self.smooth == 1:
            return labels
        pooled = group(page.vectors, labels, k, renormalize=False).vectors
        near = (torch.arange(bands)[:, None] - torch.arange(bands)[None, :]).abs() <= self.smooth // 2
        weights = near / near.sum(1, keepdim=True)
        smoothed = torch.einsum("ab,bpd->apd", weights, pooled.view(bands, pieces, -1)).reshape(k, -1)
        return unit(smoothed) if self.renormalize else smoothed


@reducer("tile_pool", needs=("grid",), budget="snapped", paper="Yeroyan 2026, Visual RAG Toolkit, arXiv 2602.12510")
@dataclass(frozen=True)
class TilePool(Reducer):
    """Means over square tiles of the grid; tiles at the right and lower edge may be smaller.

    Formula:
        v_{t} = mean of e_{i} over square tile t of the grid
    """

    renormalize: bool = True

    def count(self, page: Page, budget: float) -> int:
        rows, cols = _grid(page)
        side = _side(rows, cols, keep_count(budget, len(page)))
        return -(-rows // side) * -(-cols // side)

    def reduce(self, page: Page, k: int) -> np.ndarray:
        rows, cols = _grid(page)
        side = _side(rows, cols, k)
        row, col = np.arange(rows) // side, np.arange(cols) // side
        return (row[:, None] * -(-cols // side) + col[None, :]).ravel()


def _side(rows: int, cols: int, k: int) -> int:
    """The smallest tile side that makes at most k tiles."""
    return next(s for s in range(1, max(rows, cols) + 1) if -(-rows // s) * -(-cols // s) <= k)


def _grid(page: Page) -> tuple[int, int]:
    assert page.grid is not None, "`needs` was checked before"
    return page.grid
