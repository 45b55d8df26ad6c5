"""Greedy coverage: pick patches far from those already picked, alone or weighed against attention.

References: Gonzalez 1985 (farthest-first traversal for k-center); Carbonell & Goldstein 1998 (maximal marginal
relevance). The order is built once a page and serves every budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from pruners import Page, PruneBoardError, Pruner, Scorer, Subset, keep_count, pruner, scorer
from pruners.core.context import PruneContext
from pruners.eos import eos
from pruners.kernels.coverage import cosine_distances, greedy_order
from pruners.kernels.rows import unit_rows


@scorer("kcenter", ordinal=True, paper="Gonzalez 1985, Clustering to minimize the maximum intercluster distance")
def kcenter(page: Page) -> torch.Tensor:
    """Farthest-first traversal in 1 - cos, from the patch nearest to the page's mean.

    Formula:
        next = argmax_{j} min_{i picked} (1 − e_{i}·e_{j})
    """
    distance = cosine_distances(page.vectors.numpy())
    start = int((unit_rows(page.vectors.numpy()) @ page.vectors.numpy().mean(0)).argmax())
    flat = np.ones(len(page), np.float32)
    return _ranks(greedy_order(distance, flat, 0 * flat, start))


@pruner("attn_fps", output="subset", budget="fixed", needs=("eos",), paper="Gonzalez 1985, weighted by attention")
@dataclass(frozen=True)
class AttentionFarthest(Pruner):
    """Greedy: the patch with the highest attention^α · distance^(1-α) to those already picked.

    Formula:
        next = argmax_{j} a_{j}^{α} · min_{i picked} (1 − e_{i}·e_{j})^{1−α}
    """

    by: Scorer = eos()
    alpha: float = 0.5

    def __post_init__(self) -> None:
        _check_share("alpha", self.alpha)

    def prune(self, page: Page, budgets: Sequence[float], context: PruneContext) -> Subset:
        scores, ranked = self.by.ranked(page, context)
        attention = (scores - scores.min().clamp_max(0)).float().numpy()  # attention is >= 0; other scores are shifted
        distance = cosine_distances(page.vectors.numpy()) ** np.float32(1 - self.alpha)
        order = greedy_order(distance, attention ** np.float32(self.alpha), 0 * attention, int(ranked[0]))
        return Subset(order, tuple(keep_count(budget, len(page)) for budget in budgets))


@pruner("mmr", output="subset", budget="fixed", needs=("eos",), paper="Carbonell & Goldstein 1998, MMR")
@dataclass(frozen=True)
class MaximalMarginalRelevance(Pruner):
    """Greedy: the patch with the highest λ · attention + (1-λ) · distance to those already picked.

    Formula:
        next = argmax_{j} λ·a_{j} + (1 − λ)·min_{i picked} (1 − e_{i}·e_{j})
    """

    by: Scorer = eos()
    weight: float = 0.7  # λ

    def __post_init__(self) -> None:
        _check_share("weight", self.weight)

    def prune(self, page: Page, budgets: Sequence[float], context: PruneContext) -> Subset:
        scores, ranked = self.by.ranked(page, context)
        span = (scores.max() - scores.min()).clamp_min(torch.finfo(scores.dtype).tiny)
        attention = ((scores - scores.min()) / span).float().numpy()  # on distance's own scale, 0 to 1
        weight = np.float32(self.weight)
        order = greedy_order(
            cosine_distances(page.vectors.numpy()),
            np.full_like(attention, 1 - weight),
            weight * attention,
            int(ranked[0]),
        )
        return Subset(order, tuple(keep_count(budget, len(page)) for budget in budgets))


def _ranks(order: np.ndarray) -> torch.Tensor:
    """An order as scores: the first patch gets the highest."""
    scores = torch.empty(len(order), dtype=torch.float64)
    scores[torch.from_numpy(order)] = -torch.arange(len(order), dtype=torch.float64)
    return scores


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise PruneBoardError(f"{name} must be between 0 and 1, not {value}")
