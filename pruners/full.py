"""Nothing pruned: what a codec alone does to an index, as in `full | int8`."""

from __future__ import annotations

import torch

from pruners import Page, scorer


@scorer("full", ordinal=True, paper="a control")
def full(page: Page) -> torch.Tensor:
    """Every vector of the page, to be stored by a codec: `full | int8`. Evaluated at that one budget.

    Formula:
        s_{j} = −j
        keep the k largest s_{j}, k = N
    """
    return -torch.arange(len(page), dtype=torch.float64)
