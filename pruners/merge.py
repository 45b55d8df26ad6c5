"""`merge(after=x)`: prune with x to more vectors than the budget allows, then merge those down to it.

Reference: Yan et al. 2026, "Sculpting the Vector Space: … Prune-then-Merge" (arXiv 2602.19549), which is
`merge(after=adaptive(eos))`. `how=absorb` is the other way to lose less: keep the budget's anchors and average every
discarded patch into the anchor nearest to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from pruners import Merged, Page, PruneBoardError, Pruner, Subset, keep_count, preset, pruner, unit
from pruners.core import trees
from pruners.core.contract import Given
from pruners.eos import docpruner


@pruner("merge", output="merged", budget="fixed", paper="Yan et al. 2026, Prune-then-Merge, arXiv 2602.19549")
@dataclass(frozen=True)
class Merge(Pruner):
    """Keep `factor` times the budget with another method, then merge what was kept down to the budget."""

    after: Pruner
    how: Literal["ward", "absorb"] = "ward"
    factor: float = 2.0
    renormalize: bool = True

    def __post_init__(self) -> None:
        if self.after.declaration.output != "subset":
            raise PruneBoardError(f"merge() follows a method that keeps patches; {self.after.name} makes new vectors")
        if not self.factor >= 1:
            raise PruneBoardError(
                f"factor says how many kept vectors become one, so it is at least 1, not {self.factor}"
            )

    @property
    def budget_kind(self) -> str:
        return self.after.budget_kind

    def calibrate(self, pages: Sequence[Page], budgets: Sequence[float]) -> Merge:
        return self.replace(after=self.after.calibrate(pages, self._first(budgets)))

    def prune(self, page: Page, budgets: Sequence[float], given: Given) -> Merged:
        kept = self.after.prune(page, self._first(budgets), given)
        assert isinstance(kept, Subset)
        merged = []
        for i, budget in enumerate(budgets):
            anchors = np.sort(kept.kept(i))
            vectors = self._absorbed(page, anchors) if self.how == "absorb" else self._warded(page, anchors, budget)
            merged.append(unit(vectors) if self.renormalize else vectors)
        return Merged(tuple(merged))

    def _first(self, budgets: Sequence[float]) -> list[float]:
        """The budgets of the first stage."""
        return [budget if self.how == "absorb" else min(1.0, self.factor * budget) for budget in budgets]

    def _warded(self, page: Page, anchors: np.ndarray, budget: float) -> torch.Tensor:
        vectors = page.vectors[anchors]
        n = len(anchors)
        k = keep_count(budget, len(page)) if self.budget_kind == "fixed" else max(1, int(n / self.factor))
        return vectors if k >= n else trees.means(vectors, trees.cut(trees.ward(vectors), k), k)

    def _absorbed(self, page: Page, anchors: np.ndarray) -> torch.Tensor:
        nearest = (page.vectors @ page.vectors[anchors].T).argmax(1)
        nearest[anchors] = torch.arange(len(anchors))  # an anchor leads its own group, even beside its duplicate
        return trees.means(page.vectors, nearest, len(anchors))


@preset(
    "prune_then_merge",
    output="merged",
    budget="adaptive",
    needs=("eos",),
    paper="Yan et al. 2026, Prune-then-Merge, arXiv 2602.19549",
)
def prune_then_merge(factor: float = 2.0, z: float | None = None) -> Pruner:
    """merge(after=adaptive(eos)): DocPruner, then Ward into n // factor centroids, not renormalised."""
    return Merge(docpruner(z=z), factor=factor, renormalize=False)
