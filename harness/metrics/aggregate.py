"""From data sets to one figure a benchmark: the order in which averages are taken, and nothing else.

A data set's figure is the mean of its languages' figures, a benchmark's the mean of its data sets' (MTEB's order).
Retention is 100 · pruned / full of each data set, then the mean of these ratios: never the ratio of means. With this
order the SAP paper's 504 per-data-set cells give all of its 72 printed averages within 0.02.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def data_set_mean(languages: Sequence[npt.ArrayLike]) -> np.ndarray:
    """A data set's figure from the figures of its languages (one if it has none)."""
    return np.mean([np.asarray(figure, float) for figure in languages], axis=0)


def benchmark_mean(data_sets: Sequence[npt.ArrayLike]) -> np.ndarray:
    """A benchmark's figure from its data sets', every data set counting once, whatever its size."""
    return np.mean([np.asarray(figure, float) for figure in data_sets], axis=0)


def retention(pruned: npt.ArrayLike, full: npt.ArrayLike) -> np.ndarray:
    """Percent of the full model's figure on one data set; NaN where the full model finds nothing."""
    above, below = np.broadcast_arrays(np.asarray(pruned, float), np.asarray(full, float))
    return 100 * np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)


def benchmark_retention(pruned: Sequence[npt.ArrayLike], full: Sequence[npt.ArrayLike]) -> np.ndarray:
    """Retention on a benchmark, from one pruned and one full figure a data set."""
    return benchmark_mean([retention(p, f) for p, f in zip(pruned, full, strict=True)])
