"""How sure one can be: a paired bootstrap over queries, stratified by data set and language.

Every method is evaluated on the same resampled queries, so that differences between methods are much sharper than the
methods' own intervals. Queries are drawn with replacement within each language of each data set. `results_table.py` has
the order in which averages are taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from harness.metrics.results_table import (
    WHOLE,
    CellKey,
    ResultsTable,
    benchmark_mean,
    benchmark_retention,
    data_set_mean,
)

RESAMPLES = 10_000
SEED = 42
LEVEL = 0.95
_CHUNK = 500  # resamples weighted at a time: memory stays at _CHUNK x queries


@dataclass(frozen=True)
class Interval:
    """A figure and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """Bootstrap replicates of all cells: `[resamples, cells]`, and the figures themselves `[cells]`.

    `retention` is in percent of the full model, per data set and then averaged.
    """

    ndcg: np.ndarray
    ndcg_replicates: np.ndarray
    retention: np.ndarray
    retention_replicates: np.ndarray

    def ndcg_interval(self, cell: int) -> Interval:
        return _interval(self.ndcg[cell], self.ndcg_replicates[:, cell])

    def retention_interval(self, cell: int) -> Interval:
        return _interval(self.retention[cell], self.retention_replicates[:, cell])

    def difference(self, a: int, b: int) -> Interval:
        """Retention of cell a minus that of cell b, on the same resampled queries."""
        replicates = self.retention_replicates[:, a] - self.retention_replicates[:, b]
        return _interval(self.retention[a] - self.retention[b], replicates)

    def tied(self, a: int, b: int) -> bool:
        """Two cells are tied when the interval of their difference contains 0."""
        gap = self.difference(a, b)
        return gap.low <= 0 <= gap.high


def compare(data_sets: Sequence[Sequence[np.ndarray]], *, resamples: int = RESAMPLES, seed: int = SEED) -> Comparison:
    """Bootstrap all cells together.

    `data_sets[d][l] [cells + 1, queries]` holds NDCG@5, say, of every query in language l of data set d; the last row
    is the full model's.
    """
    rng = np.random.default_rng(seed)
    cells = len(data_sets[0][0]) - 1
    ndcg, retention = _figures([data_set_mean([values.mean(1) for values in subsets])[None] for subsets in data_sets])
    # one cell's replicates are read at a time, so they lie side by side
    ndcg_replicates, retention_replicates = (np.empty((resamples, cells), order="F") for _ in range(2))
    with threadpool_limits(1):  # the last bits of a product shared among threads depend on how many there are
        for rows in _chunks(resamples):
            size = rows.stop - rows.start
            means = [data_set_mean([_resampled_means(rng, v, size) for v in subsets]) for subsets in data_sets]
            ndcg_replicates[rows], retention_replicates[rows] = _figures(means)
    return Comparison(ndcg[0], ndcg_replicates, retention[0], retention_replicates)


def compare_tables(
    tables: Sequence[tuple[ResultsTable, float | None]], full: ResultsTable, data_sets: Sequence[str], **options: Any
) -> Comparison:
    """Bootstrap tables, each at a budget, on the same queries. No budget: each data set's only one.

    `full` is a table that has the full model, at a budget of 1.
    """

    def stratum(data_set: str, language: str) -> np.ndarray:
        """`[tables + 1, queries]`, the full model last."""
        rows = []
        for table, budget in (*tables, (full, WHOLE)):
            at = table.budgets(data_set)[0] if budget is None else budget
            rows.append(table.per_query(CellKey(data_set, language, at)))
        return np.vstack(rows)

    return compare([[stratum(name, language) for language in full.languages(name)] for name in data_sets], **options)


def tie_groups(comparison: Comparison, cells: Sequence[int]) -> list[int]:
    """Ranks of `cells` by retention, 1 the best; a cell tied with the best of the group above shares its rank."""
    order = sorted(cells, key=lambda cell: -comparison.retention[cell])
    ranks: dict[int, int] = {}
    leader = None
    for place, cell in enumerate(order, start=1):
        if leader is None or not comparison.tied(leader, cell):
            leader, rank = cell, place
        ranks[cell] = rank
    return [ranks[cell] for cell in cells]


def _figures(means: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Benchmark figures from data-set means `[resamples, cells + 1]`, the last column being the full model's."""
    # where the full model finds nothing, retention has no meaning: such a resample is left out of the interval
    pruned, full = [m[:, :-1] for m in means], [m[:, -1:] for m in means]
    return benchmark_mean(pruned), benchmark_retention(pruned, full)


def _resampled_means(rng: np.random.Generator, values: np.ndarray, resamples: int) -> np.ndarray:
    """Means of all rows of `values [rows, queries]` over `resamples` resampled query sets, as one matrix product."""
    n = values.shape[1]
    weights = _tally(rng.integers(n, size=(resamples, n), dtype=np.int32))
    means = (weights @ values.T.astype(np.float32)).astype(np.float64)
    means /= n
    return means


@numba.njit(cache=True)
def _tally(drawn: np.ndarray) -> np.ndarray:
    """How often each query was drawn, `[resamples, queries]`."""
    times = np.zeros(drawn.shape, np.float32)
    for r in range(drawn.shape[0]):
        for i in range(drawn.shape[1]):
            times[r, drawn[r, i]] += 1
    return times


def _interval(value: float, replicates: np.ndarray) -> Interval:
    known = replicates[~gone] if (gone := np.isnan(replicates)).any() else replicates
    if not len(known):
        return Interval(float(value), float("nan"), float("nan"))
    return Interval(float(value), *quantiles(known, ((1 - LEVEL) / 2, (1 + LEVEL) / 2)))


def quantiles(values: np.ndarray, shares: Sequence[float]) -> list[float]:
    """`np.quantile` of numbers none of which is NaN, to the last bit, in a quarter of its time.

    A site of many boards has millions of intervals. np.quantile spends most of each on looking at its arguments, and
    partitions for both neighbours of both shares at once, which takes twice as long as share by share.
    """
    found = []
    for share in shares:
        place = (len(values) - 1) * share
        i, j = int(place), min(int(place) + 1, len(values) - 1)
        ordered, part = np.partition(values, j), place - i
        high = float(ordered[j])
        low = float(ordered[:j].max()) if i < j else high
        found.append(low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part))
    return found


def _chunks(total: int) -> Iterator[slice]:
    return (slice(start, min(start + _CHUNK, total)) for start in range(0, total, _CHUNK))
