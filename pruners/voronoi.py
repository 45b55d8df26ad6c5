"""Voronoi pruning: a vector is worth the MaxSim that would be lost over its cell. Reference: Kankanampati et al. 2026,
"A Voronoi Cell Formulation for Principled Token Pruning in Late-Interaction Retrieval Models" (arXiv 2603.09933)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from pruners import Page, scorer, unit
from pruners.kernels.voronoi import removal_order


@scorer("voronoi", ordinal=True, trials=1, paper="Kankanampati et al. 2026, arXiv 2603.09933")
def voronoi(page: Page, rng: np.random.Generator, samples: int = 2048) -> torch.Tensor:
    """Remove, again and again, the vector whose loss costs sampled query directions least.

    A direction's cost of losing its best vector is the margin to the second best; margins are recomputed after every
    removal. The order of removal, read backwards, serves every budget. Half of the samples are the opposites of the
    other half, so that a product serves two.

    Formula:
        cost_{j} = Σ_{q: j is best} (q·e_{j} − second best), q random directions
        remove the cheapest; repeat down to k
    """
    dim = page.vectors.shape[1]
    # Fixed directions, their axes shuffled and mirrored anew for the page: distributed like fresh ones, which would
    # cost as much to draw as all the rest. Turning the page's vectors instead of the directions is the same.
    turned = page.vectors.numpy().take(rng.permutation(dim), 1) * rng.choice(np.array([-1, 1], np.float32), dim)
    removed = removal_order((_directions((samples + 1) // 2, dim) @ torch.from_numpy(turned).T).numpy())
    scores = torch.empty(len(page), dtype=torch.float64)
    scores[torch.from_numpy(removed)] = torch.arange(len(page), dtype=torch.float64)
    return scores


@lru_cache(maxsize=4)
def _directions(count: int, dim: int) -> torch.Tensor:
    """Directions spread evenly over the sphere."""
    drawn = np.random.default_rng([count, dim]).standard_normal((count, dim), dtype=np.float32)
    return unit(torch.from_numpy(drawn))
