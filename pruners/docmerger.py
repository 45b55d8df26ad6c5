"""DocMerger: three levels of attention decide whether a patch is kept, merged with others, or dropped.

Reference: the code of jianxyou/project_6765 (benchmark/methods/docmerger.py), whose thresholds, statistics and
clustering these are; a test holds this file to a transcription of it. It keeps μ + 0.5σ < a, drops a ≤ μ − 0.25σ and
merges what lies between into a quarter of its vectors. How it meets a budget is ours: both thresholds move together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from pruners import Merged, Page, PruneBoardError, Pruner, Scorer, learned, pruner
from pruners.core.context import PruneContext
from pruners.core.groups import weighted_means
from pruners.core.seed import SEED
from pruners.eos import eos
from pruners.kernels import trees
from pruners.merge import attention


@pruner("docmerger", output="merged", budget="adaptive", needs=("eos",), paper="DocMerger, jianxyou/project_6765")
@dataclass(frozen=True)
class DocMerger(Pruner):
    """Keep the most attended patches, merge the middle ones by average linkage, drop the rest.

    `shift=0` are the thresholds as published, whatever ratio comes out. Without it, both move by the same number of
    standard deviations, which meets the budget over calibration pages.

    Formula:
        keep a_{j} > μ + (u + t)·σ; drop a_{j} ≤ μ − (l − t)·σ; μ, σ of the page's attention clipped at q_{75} + 3·IQR
        the M others: average linkage on 1 − e_{i}·e_{j} into max(1, ⌊r·M⌋) clusters
        v_{C} = Σ_{i∈C} a_{i}·e_{i} / Σ_{i∈C} a_{i}; t = 0 or such that γN vectors are left of calibration pages
    """

    by: Scorer = eos()
    shift: float | None = None  # t
    upper: float = 0.5  # u
    lower: float = 0.25  # l
    ratio: float = 0.25  # r
    shifts: dict[float, float] | None = learned()

    def __post_init__(self) -> None:
        if not (self.upper + self.lower >= 0 and 0 <= self.ratio <= 1):
            raise PruneBoardError(
                f"upper ({self.upper}) lies above -lower ({-self.lower}), and ratio is a part of the merged patches, "
                f"0 to 1, not {self.ratio}"
            )

    @property
    def needs_calibration(self) -> bool:
        return self.shift is None or self.by.needs_calibration

    @property
    def own_threshold(self) -> bool:
        return self.shift is not None

    @property
    def partner(self) -> Pruner | None:
        return self.by if self.own_threshold else None

    @property
    def learned_thresholds(self) -> Mapping[float, float]:
        return self.shifts or {}

    def calibrate(self, pages: Sequence[Page], budgets: Sequence[float]) -> Self:
        ready = super().calibrate(pages, budgets)  # the scorer may learn, too
        if self.shift is not None:
            return ready
        if not pages:
            raise PruneBoardError(f"{self} needs at least one calibration page")
        found = [deviations(attention(ready.by, page, PruneContext(page.id, SEED, 0))) for page in pages]
        return ready.replace(shifts={budget: self._matched(found, budget) for budget in budgets})

    def prune(self, page: Page, budgets: Sequence[float], context: PruneContext) -> Merged:
        weights = attention(self.by, page, context)
        z = deviations(weights)
        return Merged(tuple(self._at(page, weights, *self._levels(z, self._shift(budget))) for budget in budgets))

    def _at(self, page: Page, weights: np.ndarray, kept: np.ndarray, merged: np.ndarray) -> torch.Tensor:
        if not len(kept) and not len(merged):  # a page always keeps its best patch, so that it can be found at all
            kept = np.array([weights.argmax()])
        k = self._clusters(len(merged))
        labels = np.full(len(page), -1)
        labels[kept] = np.arange(len(kept))
        if len(merged):
            tree = trees.average_cosine(page.vectors.numpy()[merged])
            labels[merged] = len(kept) + trees.cut(tree, k)
        return weighted_means(page.vectors, labels, weights, len(kept) + k, renormalize=False)

    def _levels(self, z: np.ndarray, shift: float) -> tuple[np.ndarray, np.ndarray]:
        """The patches that are kept, and those that are merged."""
        kept = (z > self.upper + shift) | (shift == -np.inf)
        return np.flatnonzero(kept), np.flatnonzero(~kept & (z > shift - self.lower))

    def _clusters(self, patches: int) -> int:
        return max(1, int(patches * self.ratio)) if patches else 0

    def _matched(self, pages: Sequence[np.ndarray], budget: float) -> float:
        """The largest shift, to the precision of a float, with which pages keep the budget or more of their vectors."""
        if budget == 1:
            return -np.inf
        wanted = budget * sum(map(len, pages))
        finite = np.concatenate([z[np.isfinite(z)] for z in pages])
        low, high = finite.min(initial=0) - abs(self.upper) - 1, finite.max(initial=0) + abs(self.lower) + 1
        for _ in range(64):
            middle = (low + high) / 2
            levels = [self._levels(z, middle) for z in pages]
            if sum(max(1, len(kept) + self._clusters(len(merged))) for kept, merged in levels) < wanted:
                high = middle
            else:
                low = middle
        return float(low)

    def _shift(self, budget: float) -> float:
        if self.shift is not None:
            return self.shift
        if self.shifts is None or budget not in self.shifts:
            raise PruneBoardError(f"it was not calibrated for budget {budget:g}; call calibrate(pages, budgets) first")
        return self.shifts[budget]


def deviations(attention: np.ndarray) -> np.ndarray:
    """(a - μ) / σ of one page, μ and σ (of a sample) of attention clipped at three quartile ranges above the upper
    quartile: sinks break the plain ones. Without spread no patch stands out, and all are below every threshold."""
    low, high = np.quantile(attention, [0.25, 0.75])
    clipped = np.minimum(attention, high + 3 * (high - low))
    spread = clipped.std(ddof=1) if len(attention) > 1 else 0.0
    return (attention - clipped.mean()) / spread if spread > 0 else np.full(len(attention), -np.inf)
