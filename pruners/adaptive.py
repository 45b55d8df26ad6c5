"""`adaptive(x)`: pages share one threshold on the z-score of x's scores, so dense pages keep more than sparse ones.

Matched (the default): the threshold is the global quantile of z-scores at 1 - γ over calibration pages, so that the
average keep ratio meets the budget. Native (`z=…`): the threshold is given, and the budget is whatever comes out.
Definitions: SAP paper, App. "Baseline Implementation Details", after DocPruner (Yan et al. 2025).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from pruners import Page, PruneBoardError, Pruner, Scorer, Subset, learned, pruner
from pruners.core.context import PruneContext
from pruners.core.seed import SEED


@pruner("adaptive", output="subset", budget="adaptive", paper="Yan et al. 2025, DocPruner, arXiv 2509.23883")
@dataclass(frozen=True)
class Adaptive(Pruner):
    """Threshold on the page-wise z-score of another method's scores; it matches the budget over calibration pages.

    Formula:
        z_{j} = (s_{j} − μ_{page}) / σ_{page}
        keep z_{j} > τ, τ the (1 − γ) quantile over calibration pages
    """

    of: Scorer
    z: float | None = None
    clip: bool = False  # mean and deviation from scores clipped to Tukey's fences: attention sinks break the plain ones
    thresholds: dict[float, float] | None = learned()

    def __post_init__(self) -> None:
        if self.of.declaration.ordinal:
            raise PruneBoardError(f"{self.of.name} only ranks patches; adaptive() needs scores on a scale")

    @property
    def needs_calibration(self) -> bool:
        return self.z is None or self.of.needs_calibration

    @property
    def own_threshold(self) -> bool:
        return self.z is not None

    @property
    def partner(self) -> Pruner | None:
        return self.of if self.own_threshold else None

    @property
    def learned_thresholds(self) -> Mapping[float, float]:
        return self.thresholds or {}

    def calibrate(self, pages: Sequence[Page], budgets: Sequence[float]) -> Self:
        ready = super().calibrate(pages, budgets)  # the scorer may learn, too
        if self.z is not None:
            return ready
        if not pages:
            raise PruneBoardError(f"{self} needs at least one calibration page")
        scores = [ready.of.ranked(page, PruneContext(page.id, SEED, 0))[0] for page in pages]
        z = np.concatenate([zscores(of_page, self.clip) for of_page in scores])
        quantiles = np.quantile(z, [1 - budget for budget in budgets])
        # γ = 1 keeps everything; the smallest z-score itself would fail the strict comparison with its own quantile
        found = {b: -np.inf if b == 1 else float(q) for b, q in zip(budgets, quantiles, strict=True)}
        return ready.replace(thresholds=found)

    def prune(self, page: Page, budgets: Sequence[float], context: PruneContext) -> Subset:
        scores, order = self.of.ranked(page, context)
        z = zscores(scores, self.clip)
        # a page always keeps its best patch, so that it can be found at all
        return Subset(order, tuple(max(1, int((z > self._threshold(budget)).sum())) for budget in budgets))

    def _threshold(self, budget: float) -> float:
        if self.z is not None:
            return self.z
        if self.thresholds is None or budget not in self.thresholds:
            raise PruneBoardError(f"it was not calibrated for budget {budget:g}; call calibrate(pages, budgets) first")
        return self.thresholds[budget]


def zscores(scores: torch.Tensor, clip: bool) -> np.ndarray:
    """(s - μ) / σ of one page, in float64; all zero where σ is. With `clip`, μ and σ of the clipped scores."""
    s = scores.double().numpy()
    base = s
    if clip:
        low, high = np.quantile(s, [0.25, 0.75])
        base = np.clip(s, low - 1.5 * (high - low), high + 1.5 * (high - low))
    spread = base.std()
    return (s - base.mean()) / spread if spread > 0 else np.zeros_like(s)
