"""A run as plain rows: one for every data set, method and budget, and averages by benchmark with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.evaluation.methods import FULL, Method
from harness.evaluation.run_folder import RunFolder
from harness.metrics.ranking import CUTOFFS
from harness.metrics.results_table import ResultsTable, benchmark_retention, retention
from pruners.core.errors import PruneBoardError

NDCG = tuple(f"ndcg@{k}" for k in CUTOFFS)


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
        full = run.read_table(data_sets, FULL, NDCG)
        for method in done:
            rows = _data_set_rows(run, group, data_sets, method, full)
            cells += rows
            averages += _averages(group, method, rows, summaries[group])
    return Cells(cells, averages, failures)


def _data_set_rows(
    run: RunFolder, group: str, data_sets: Sequence[str], method: Method, full: ResultsTable
) -> list[dict[str, Any]]:
    table, rows = run.read_table(data_sets, method.slug, NDCG), []
    for data_set in data_sets:
        whole = {name: full.mean(data_set, 1.0, name) for name in NDCG}
        for entry in run.read_summary(data_set, method.slug):
            figures = {name: table.mean(data_set, entry["budget"], name) for name in NDCG}
            kept = {f"retention@{k}": float(retention(figures[f"ndcg@{k}"], whole[f"ndcg@{k}"])) for k in CUTOFFS}
            about = {name: entry[name] for name in ("budget", "realised", "drift", "score_retention")}
            row = {"benchmark": group, "data_set": data_set, "method": method.text, **about}
            rows.append({**row, **{f"full_{name}": value for name, value in whole.items()}, **figures, **kept})
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


def _only(rows: list[dict[str, Any]]) -> dict[str, Any]:
    assert len(rows) == 1, f"{len(rows)} rows where one was expected"
    return rows[0]
