"""Random pruning: the baseline every method must beat. Ma et al. 2025 (arXiv 2506.04997)."""

from __future__ import annotations

import numpy as np
import torch

from pruners import Page, scorer


@scorer("random", paper="Ma et al. 2025, arXiv 2506.04997")
def random(page: Page, rng: np.random.Generator) -> torch.Tensor:
    """k patches, uniform without replacement.

    Formula:
        s_{j} ~ U(0,1)
        keep the k largest s_{j}
    """
    return torch.from_numpy(rng.random(len(page)))


@scorer("random_nonblank", needs=("ink",), paper="a control")
def random_nonblank(page: Page, rng: np.random.Generator, threshold: float = 0.0) -> torch.Tensor:
    """Random among the patches with ink; blank ones only when those are used up.

    Formula:
        s_{j} ~ U(0,1) + 1 if patch j has ink
        keep the k largest s_{j}
    """
    has_ink = page.signals["ink"][-1].numpy() > threshold
    return torch.from_numpy(rng.random(len(page)) + has_ink)
