"""Controls that know nothing of the model: position on the page, and pixels. A method that loses to one of these is
not worth its attention maps."""

from __future__ import annotations

from functools import lru_cache

import torch

from pruners import Page, scorer


@scorer("first_k", ordinal=True, paper="a control")
def first_k(page: Page) -> torch.Tensor:
    """The first k patches in reading order.

    Formula:
        s_{j} = −j
        keep the k largest s_{j}
    """
    return -torch.arange(len(page), dtype=torch.float64)


@scorer("uniform_grid", needs=("grid",), ordinal=True, paper="a control")
def uniform_grid(page: Page) -> torch.Tensor:
    """Patches at an even stride over the grid: every 2nd, 4th, 8th … row and column.

    Budgets must nest, so patches are ordered by bit-reversed position, counted from the page's centre: the first 1/4
    of a 2^p grid is its lattice of stride 2, the first 1/16 that of stride 4, and so on.

    Formula:
        s_{j} = bit-reversed place of patch j, counted from the page's centre
        keep the k largest s_{j}
    """
    assert page.grid is not None, "`needs` was checked before"
    return _lattice(*page.grid).clone()


@lru_cache(maxsize=64)
def _lattice(rows: int, cols: int) -> torch.Tensor:
    bits = max(1, (max(rows, cols) - 1).bit_length())
    centre = 1 << (bits - 1)
    row = (torch.arange(rows) + centre).repeat_interleave(cols)
    col = (torch.arange(cols) + centre).repeat(rows)
    rank = torch.zeros(rows * cols, dtype=torch.int64)
    for bit in range(bits):  # the lowest decide first; row ^ col puts the diagonal neighbour before the adjacent two
        rank = (rank << 2) | ((((row ^ col) >> bit) & 1) << 1) | ((row >> bit) & 1)
    return -rank.double()


@scorer("ink", needs=("ink",), paper="a control")
def ink(page: Page) -> torch.Tensor:
    """Standard deviation of a patch's pixels: keeps what is printed.

    Formula:
        s_{j} = standard deviation of the luma of patch j
        keep the k largest s_{j}
    """
    return page.signals["ink"][-1].float()
