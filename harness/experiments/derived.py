"""Figures that are computed from an experiment's rows: gaps between windows, and factors between drops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from harness.experiments.windows import NINE

Retentions = Mapping[str, float]
"""Window -> NDCG@5 retention on one benchmark."""


class Gaps(NamedTuple):
    """How far a window lies behind the best of the nine, in points of retention: 0 if it is the best, else below."""

    mean: float
    """Against the best on the mean over benchmarks."""
    worst: float
    """The largest one against the best on each benchmark by itself."""


def gap(retentions: Retentions, window: str) -> float:
    return retentions[window] - max(retentions[name] for name in NINE)


def gaps(benchmarks: Mapping[str, Retentions], window: str) -> Gaps:
    """The two gaps of the SAP paper's Table `layer_instantiation`."""
    return Gaps(gap(over_benchmarks(benchmarks), window), min(gap(own, window) for own in benchmarks.values()))


def over_benchmarks(benchmarks: Mapping[str, Retentions]) -> dict[str, float]:
    """The mean over benchmarks, of windows that all of them have."""
    first, *rest = benchmarks.values()
    shared = [window for window in first if all(window in other for other in rest)]
    return {window: float(np.mean([own[window] for own in benchmarks.values()])) for window in shared}


def drop_factor(fine_tuned: float | None, base: float | None) -> float | None:
    """How many times the base model's drop the fine-tuned model's is; none where the base model does not drop."""
    if fine_tuned is None or base is None or base <= 0:
        return None
    return fine_tuned / base
