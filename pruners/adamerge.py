"""AdaMerge: a page is merged until its merges stop being cheap, so that plain pages keep fewer vectors than rich ones.

Reference: You & Ni 2026, "AdaMerge: Tuning-Free Patch Compression" (arXiv 2609.22562), read in its abstract: the
cosines at which hierarchical clustering merges fall off a cliff, which is detected for each page by gap analysis, and
centroids are weighted by attention. What that leaves open is chosen here: average linkage on 1 - cos, whose cosines
never rise; the cliff as the point farthest above the chord of their curve (Satopää et al. 2011, "Kneedle"), because
the largest single gap of our pages is nearly always among the last merges; unit means; and how a budget is met.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from pruners import Merged, Page, PruneBoardError, Pruner, Scorer, learned, pruner
from pruners.core.context import PruneContext
from pruners.core.groups import weighted_means
from pruners.eos import eos
from pruners.kernels import trees
from pruners.linkage import agglomerative
from pruners.merge import attention


@pruner(
    "adamerge", output="merged", budget="adaptive", needs=("eos",), paper="You & Ni 2026, AdaMerge, arXiv 2609.22562"
)
@dataclass(frozen=True)
class AdaMerge(Pruner):
    """Average linkage, cut where a page's merge similarity falls off its cliff; attention-weighted means.

    `factor=1` is the cliff itself, whatever ratio comes out. Without it, pages keep a multiple of what their cliffs
    say, the same for all, that meets the budget over calibration pages.

    Formula:
        similarities σ_{1} ≥ … ≥ σ_{N−1} of the merges; m = argmax_{i} (σ_{i} − chord from σ_{1} to σ_{N−1} at i)
        k = f·(N − m), f = 1 or such that mean k = γN over calibration pages
        v_{C} = Σ_{i∈C} a_{i}·e_{i} / ‖Σ_{i∈C} a_{i}·e_{i}‖, a the EOS attention
    """

    by: Scorer = eos()
    factor: float | None = None
    renormalize: bool = True
    factors: dict[float, float] | None = learned()

    def __post_init__(self) -> None:
        if self.factor is not None and not self.factor > 0:
            raise PruneBoardError(f"factor multiplies the vectors that a page's cliff leaves, so not {self.factor}")

    @property
    def needs_calibration(self) -> bool:
        return self.factor is None or self.by.needs_calibration

    @property
    def own_threshold(self) -> bool:
        return self.factor is not None

    @property
    def partner(self) -> Pruner | None:
        return agglomerative(renormalize=self.renormalize) if self.own_threshold else None

    @property
    def learned_thresholds(self) -> Mapping[float, float]:
        return self.factors or {}

    def calibrate(self, pages: Sequence[Page], budgets: Sequence[float]) -> Self:
        ready = super().calibrate(pages, budgets)  # the scorer may learn, too
        if self.factor is not None:
            return ready
        if not pages:
            raise PruneBoardError(f"{self} needs at least one calibration page")
        cliffs = np.array([cliff(trees.average_cosine_heights(page.vectors.numpy())[1]) for page in pages])
        sizes = np.array([len(page) for page in pages])
        return ready.replace(factors={budget: _factor(cliffs, sizes, budget) for budget in budgets})

    def prune(self, page: Page, budgets: Sequence[float], context: PruneContext) -> Merged:
        merges, heights = trees.average_cosine_heights(page.vectors.numpy())
        weights, at = attention(self.by, page, context), cliff(heights)
        counts = [int(_count(at, len(page), self._factor(budget))) for budget in budgets]
        made = [weighted_means(page.vectors, trees.cut(merges, k), weights, k, self.renormalize) for k in counts]
        return Merged(tuple(made))

    def _factor(self, budget: float) -> float:
        if self.factor is not None:
            return self.factor
        if self.factors is None or budget not in self.factors:
            raise PruneBoardError(f"it was not calibrated for budget {budget:g}; call calibrate(pages, budgets) first")
        return self.factors[budget]


def cliff(heights: np.ndarray) -> int:
    """How many vectors are left of a page that is merged up to its cliff. One, where merges cost nothing throughout."""
    if len(heights) < 3 or heights[-1] <= heights[0]:
        return 1
    chord = np.linspace(heights[0], heights[-1], len(heights))
    return len(heights) - int((chord - heights).argmax())  # N - m: of N - 1 merges the first m are made


def _count(cliffs: np.ndarray | int, sizes: np.ndarray | int, factor: float) -> np.ndarray:
    """What pages keep: at least one vector, at most all."""
    return np.clip(np.rint(factor * np.asarray(cliffs, np.float64)), 1, sizes).astype(np.int64)


def _factor(cliffs: np.ndarray, sizes: np.ndarray, budget: float) -> float:
    """The smallest factor, to the precision of a float, with which pages keep the budget or more of their vectors."""
    if budget == 1:
        return np.inf
    low, high = 0.0, float((sizes / cliffs).max())
    for _ in range(64):
        middle = (low + high) / 2
        if _count(cliffs, sizes, middle).sum() < budget * sizes.sum():
            low = middle
        else:
            high = middle
    return high
