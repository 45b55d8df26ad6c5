"""Per-query results as one table, and the means that are taken of it; `aggregate.py` has the order of averages.

A run's results, an experiment's cells, a submission's rows and the leaderboard's intervals are all read from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from harness.metrics.aggregate import data_set_mean
from harness.metrics.uncertainty import Comparison, compare

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


def _names(table: Any) -> list[str]:
    """Columns of an arrow table or of a mapping; rankings, which are lists, are no measure."""
    names = getattr(table, "column_names", None) or list(table)
    return [name for name in names if not name.startswith("top_")]
