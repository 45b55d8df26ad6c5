"""`merge(after=x)`: prune with x to more vectors than the budget allows, then merge those down to it.

Reference: Yan et al. 2026, "Sculpting the Vector Space: … Prune-then-Merge" (arXiv 2602.19549), which is
`merge(after=adaptive(eos))`. `how=absorb` is the other way to lose less: keep the budget's anchors and average every
discarded patch into the anchor nearest to it, all alike or each by its score (`weighted`: see agc.py, anchorfold.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from pruners import Merged, Page, PruneBoardError, Pruner, Scorer, Subset, keep_count, preset, pruner
from pruners.core.context import PruneContext
from pruners.core.groups import Groups, group, weighted_means
from pruners.eos import docpruner
from pruners.kernels import trees


@pruner("merge", output="merged", budget="fixed", paper="Yan et al. 2026, Prune-then-Merge, arXiv 2602.19549")
@dataclass(frozen=True)
class Merge(Pruner):
    """Keep `factor` times the budget with another method, then merge what was kept down to the budget.

    Formula:
        keep m·γN vectors by another method
        Ward's tree, cut into k clusters; v_{C} = mean of e_{i}, i ∈ C
    """

    after: Pruner
    how: Literal["ward", "absorb"] = "ward"
    factor: float = 2.0
    renormalize: bool = True
    weighted: bool = False  # patches count in their mean by the score that another method gives them

    def __post_init__(self) -> None:
        if self.after.declaration.output != "subset":
            raise PruneBoardError(f"merge() follows a method that keeps patches; {self.after.name} makes new vectors")
        if not self.factor >= 1:
            raise PruneBoardError(
                f"factor says how many kept vectors become one, so it is at least 1, not {self.factor}"
            )
        if self.weighted and (not isinstance(self.after, Scorer) or self.after.declaration.ordinal):
            raise PruneBoardError(f"weighted=true needs scores on a scale, which {self.after.name} does not give")

    @property
    def budget_kind(self) -> str:
        return self.after.budget_kind

    def calibrate(self, pages: Sequence[Page], budgets: Sequence[float]) -> Merge:
        return self.replace(after=self.after.calibrate(pages, self._first(budgets)))

    def prune(self, page: Page, budgets: Sequence[float], context: PruneContext) -> Merged:
        kept = self.after.prune(page, self._first(budgets), context)
        assert isinstance(kept, Subset)
        weights = attention(self.after, page, context) if self.weighted else None
        parts = []
        for i, budget in enumerate(budgets):
            anchors = np.sort(kept.kept(i))
            labels = self._absorbed(page, anchors) if self.how == "absorb" else self._warded(page, anchors, budget)
            parts.append(self._means(page, labels, weights))
        return Merged(tuple(parts))

    def _means(self, page: Page, labels: np.ndarray, weights: np.ndarray | None) -> Groups | torch.Tensor:
        k = int(labels.max()) + 1
        if weights is None:
            return group(page.vectors, labels, k, self.renormalize)
        return weighted_means(page.vectors, labels, weights, k, self.renormalize)

    def _first(self, budgets: Sequence[float]) -> list[float]:
        """The budgets of the first stage."""
        return [budget if self.how == "absorb" else min(1.0, self.factor * budget) for budget in budgets]

    def _warded(self, page: Page, anchors: np.ndarray, budget: float) -> np.ndarray:
        n = len(anchors)
        k = keep_count(budget, len(page)) if self.budget_kind == "fixed" else max(1, int(n / self.factor))
        labels = np.full(len(page), -1)
        labels[anchors] = np.arange(n) if k >= n else trees.cut(trees.ward(page.vectors.numpy()[anchors]), k)
        return labels

    def _absorbed(self, page: Page, anchors: np.ndarray) -> np.ndarray:
        nearest = (page.vectors @ page.vectors[anchors].T).argmax(1).numpy()
        nearest[anchors] = np.arange(len(anchors))  # an anchor leads its own group, even beside its duplicate
        return nearest


@preset(
    "prune_then_merge",
    output="merged",
    budget="adaptive",
    needs=("eos",),
    paper="Yan et al. 2026, Prune-then-Merge, arXiv 2602.19549",
)
def prune_then_merge(factor: float = 2.0, z: float | None = None) -> Pruner:
    """merge(after=adaptive(eos)): DocPruner, then Ward into n // factor centroids, not renormalised.

    Formula:
        n vectors by DocPruner at m·γ
        Ward into ⌊n/m⌋ clusters; v_{C} = mean of e_{i}, i ∈ C
    """
    return Merge(docpruner(z=z), factor=factor, renormalize=False)


def attention(scorer: Pruner, page: Page, context: PruneContext) -> np.ndarray:
    """A scorer's scores as weights: attention as it is; scores that may be negative are shifted up to 0."""
    assert isinstance(scorer, Scorer)
    scores, _ = scorer.ranked(page, context)
    return (scores - scores.min().clamp_max(0)).double().numpy()
