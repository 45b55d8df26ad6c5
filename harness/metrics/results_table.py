"""Per-query results as one table, and the order in which averages are taken of it.

A run's results, an experiment's cells, a submission's rows and the leaderboard's intervals are all read from here.

A data set's figure is the mean of its languages' figures, a benchmark's the mean of its data sets' (MTEB's order).
Retention is 100 · pruned / full of each data set, then the mean of these ratios: never the ratio of means. With this
order the SAP paper's 504 per-data-set cells give all of its 72 printed averages within 0.02.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

HEADLINE = "ndcg@5"
WHOLE = 1.0
"""The budget of the full model."""
KEYS = ("query", "language", "budget", "trial")
"""The columns that say what a row of measures is of."""


class CellKey(NamedTuple):
    """Where rows of a table belong. The language is empty where a data set has one only."""

    data_set: str
    language: str
    budget: float


@dataclass(frozen=True)
class ResultsTable:
    """One method: of every cell its queries, and each measure of them as `[trials, queries]`."""

    queries: Mapping[CellKey, tuple[str, ...]]
    measures: Mapping[CellKey, Mapping[str, np.ndarray]]

    @classmethod
    def of(cls, rows: Mapping[str, Any]) -> ResultsTable:
        """From the columns of each data set's rows; within a budget and trial, queries are in one order."""
        queries: dict[CellKey, tuple[str, ...]] = {}
        measures: dict[CellKey, dict[str, np.ndarray]] = {}
        for data_set, table in rows.items():
            columns = {name: np.asarray(table[name]) for name in _names(table)}
            for language in sorted(set(columns["language"])):
                for budget in dict.fromkeys(columns["budget"].tolist()):
                    here = (columns["language"] == language) & (columns["budget"] == budget)
                    trials = len(np.unique(columns["trial"][here]))
                    cell = CellKey(data_set, language, budget)
                    found = {name: values[here].reshape(trials, -1) for name, values in columns.items()}
                    queries[cell] = tuple(found["query"][0])
                    measures[cell] = {name: values for name, values in found.items() if name not in KEYS}
        return cls(queries, measures)

    @classmethod
    def of_means(cls, found: Mapping[CellKey, tuple[Sequence[str], np.ndarray]]) -> ResultsTable:
        """From the headline measure of each query, already the mean over trials."""
        ordered = sorted(found.items())
        queries = {cell: tuple(names) for cell, (names, _) in ordered}
        return cls(queries, {cell: {HEADLINE: values[None]} for cell, (_, values) in ordered})

    def languages(self, data_set: str) -> list[str]:
        return list(dict.fromkeys(cell.language for cell in self.queries if cell.data_set == data_set))

    def budgets(self, data_set: str) -> list[float]:
        return list(dict.fromkeys(cell.budget for cell in self.queries if cell.data_set == data_set))

    def per_query(self, cell: CellKey, measure: str = HEADLINE) -> np.ndarray:
        """A measure of each query, mean over trials."""
        return self.measures[cell][measure].mean(0)

    def mean(self, data_set: str, budget: float, measure: str = HEADLINE) -> float:
        """A data set's figure: mean over trials and queries of a language, then over languages."""
        cells = [CellKey(data_set, language, budget) for language in self.languages(data_set)]
        return float(data_set_mean([self.measures[cell][measure].mean() for cell in cells]))


def _names(table: Any) -> list[str]:
    """Columns of an arrow table or of a mapping; rankings, which are lists, are no measure."""
    names = getattr(table, "column_names", None) or list(table)
    return [name for name in names if not name.startswith("top_")]


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
