"""From data sets to one figure a benchmark: the order in which averages are taken, and nothing else.

A data set's figure is the mean of its languages' figures, a benchmark's the mean of its data sets' (MTEB's order).
Retention is 100 · pruned / full of each data set, then the mean of these ratios: never the ratio of means. With this
order the SAP paper's 504 per-data-set cells give all of its 72 printed averages within 0.02.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt


def data_set_mean(languages: Sequence[npt.ArrayLike]) -> np.ndarray:
    """A data set's figure from the figures of its languages (one if it has none)."""
    return _mean(languages)


def benchmark_mean(data_sets: Sequence[npt.ArrayLike]) -> np.ndarray:
    """A benchmark's figure from its data sets', every data set counting once, whatever its size."""
    return _mean(data_sets)


def retention(pruned: npt.ArrayLike, full: npt.ArrayLike) -> np.ndarray:
    """Percent of the full model's figure on one data set; NaN where the full model finds nothing."""
    above, below = np.broadcast_arrays(np.asarray(pruned, float), np.asarray(full, float))
    ratio = np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)
    ratio *= 100
    return ratio


def benchmark_retention(pruned: Sequence[npt.ArrayLike], full: Sequence[npt.ArrayLike]) -> np.ndarray:
    """Retention on a benchmark, from one pruned and one full figure a data set."""
    return _mean(retention(p, f) for p, f in zip(pruned, full, strict=True))


def _mean(figures: Iterable[npt.ArrayLike]) -> np.ndarray:
    """Tables of bootstrap replicates are added one by one: to stack them would take longer than to add them."""
    arrays = (np.asarray(figure, float) for figure in figures)
    first = next(arrays)
    if first.ndim < 2:
        return np.mean([first, *arrays], axis=0)
    total, count = first.copy(), 1
    for array in arrays:
        total += array
        count += 1
    total /= count
    return total
