"""A run as plain rows: one for every data set, method and budget, and averages by benchmark with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from harness.evaluation.methods import FULL, Method
from harness.evaluation.run_folder import RunFolder
from harness.metrics.aggregate import benchmark_retention, data_set_mean, retention
from harness.metrics.ranking import CUTOFFS
from pruners.core.errors import PruneBoardError


@dataclass(frozen=True)
class Cells:
    """`data_sets`: a row for every data set, method and budget. `averages`: one for every benchmark, method, budget."""

    data_sets: list[dict[str, Any]]
    averages: list[dict[str, Any]]
    failures: Mapping[str, str]

    def average(self, group: str, method: str, budget: float) -> dict[str, Any]:
        return _only(
            [r for r in self.averages if (r["benchmark"], r["method"], r["budget"]) == (group, method, budget)]
        )

    def methods(self) -> list[str]:
        return list(dict.fromkeys(row["method"] for row in self.averages))


def read_cells(
    run: RunFolder,
    groups: Mapping[str, Sequence[str]],
    methods: Sequence[Method],
    budgets: Sequence[float],
    summaries: Mapping[str, Sequence[dict]],
    failures: Mapping[str, str],
) -> Cells:
    """Everything that tables and figures need of a run."""
    cells: list[dict[str, Any]] = []
    averages: list[dict[str, Any]] = []
    done = [
        m for m in methods if all(run.has(data_set, m.slug) for data_sets in groups.values() for data_set in data_sets)
    ]
    if not done:
        raise PruneBoardError(f"no method could be evaluated: {'; '.join(failures.values()) or 'none was asked for'}")
    for group, data_sets in groups.items():
        full = {data_set: _figures(run.read_result(data_set, FULL).per_query) for data_set in data_sets}
        for method in done:
            rows = [
                row for data_set in data_sets for row in _data_set_rows(run, group, data_set, method, full[data_set])
            ]
            cells += rows
            averages += _averages(group, method, rows, summaries[group])
    return Cells(cells, averages, failures)


def _data_set_rows(
    run: RunFolder, group: str, data_set: str, method: Method, full: Mapping[str, float]
) -> list[dict[str, Any]]:
    result = run.read_result(data_set, method.slug)
    rows = []
    for entry in result.summary:
        figures = _figures(result.per_query[result.per_query["budget"] == entry["budget"]])
        rows.append(
            {
                "benchmark": group,
                "data_set": data_set,
                "method": method.text,
                "budget": entry["budget"],
                "realised": entry["realised"],
                "drift": entry["drift"],
                "score_retention": entry["score_retention"],
                **{f"full_ndcg@{k}": full[f"ndcg@{k}"] for k in CUTOFFS},
                **figures,
                **{f"retention@{k}": float(retention(figures[f"ndcg@{k}"], full[f"ndcg@{k}"])) for k in CUTOFFS},
            }
        )
    return rows


def _averages(
    group: str, method: Method, rows: Sequence[dict[str, Any]], summary: Sequence[dict]
) -> list[dict[str, Any]]:
    """The summary's rows of a method, with retention at the other cutoffs."""
    found = []
    own = [row for row in summary if row["method"] == method.text]
    per_budget = len({row["data_set"] for row in rows})
    budgets = len(rows) // per_budget
    for b, line in enumerate(sorted(own, key=lambda row: row["budget"])):
        cells = rows[b::budgets]
        cutoffs = {
            f"retention@{k}": float(
                benchmark_retention([c[f"ndcg@{k}"] for c in cells], [c[f"full_ndcg@{k}"] for c in cells])
            )
            for k in CUTOFFS
        }
        full = float(np.mean([cell["full_ndcg@5"] for cell in cells]))
        found.append({"benchmark": group, "data_sets": per_budget, "full_ndcg@5": full, **line, **cutoffs})
    return found


def _figures(per_query: pd.DataFrame) -> dict[str, float]:
    """NDCG at every cutoff of one data set and budget: mean over trials and queries, then over languages."""
    by_language = [rows for _, rows in per_query.groupby("language", sort=True)]
    names = [f"ndcg@{k}" for k in CUTOFFS]
    return {name: float(data_set_mean([rows[name].mean() for rows in by_language])) for name in names}


def _only(rows: list[dict[str, Any]]) -> dict[str, Any]:
    assert len(rows) == 1, f"{len(rows)} rows where one was expected"
    return rows[0]
