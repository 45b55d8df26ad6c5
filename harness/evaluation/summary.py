"""A run's figures over all its data sets: averages in MTEB's order, intervals, tied ranks. Derived, never stored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from harness.evaluation.methods import Method
from harness.evaluation.results import FULL
from harness.evaluation.run_folder import RunFolder
from harness.metrics.aggregate import benchmark_mean, data_set_mean
from harness.metrics.uncertainty import Comparison, compare, tie_groups
from pruners.core.budget import drifted

HEADLINE = "ndcg@5"


def summarise(run: RunFolder, tasks: Sequence[str], methods: Sequence[Method], budgets: Sequence[float]) -> list[dict]:
    """One row for each method and budget that every data set has, best first within a budget; the full model first.

    Diagnostics are listed unranked.
    """
    complete = [m for m in methods if all(run.has(task, m.slug) for task in tasks)]
    full = [run.read_result(task, FULL) for task in tasks]
    found = {m.text: [run.read_result(task, m.slug) for task in tasks] for m in complete}
    cells = [(m, b) for m in complete for b in range(len(budgets))]
    comparison = compare(
        [
            _by_language([found[m.text][t].per_query for m in complete], full[t].per_query, budgets)
            for t in range(len(tasks))
        ]
    )
    rows = [_full_row(full)]
    timings = run.read_json("timings.json") or {}
    for b, budget in enumerate(budgets):
        here = [i for i, (_, which) in enumerate(cells) if which == b]
        ranked = [i for i in here if not cells[i][0].pruner.declaration.diagnostic]
        ranks = dict(zip(ranked, tie_groups(comparison, ranked), strict=True))
        for i in sorted(here, key=lambda i: -comparison.retention[i]):
            method = cells[i][0]
            times = [timings[task][method.text] for task in tasks if method.text in timings.get(task, {})]
            entries = [result.summary[b] for result in found[method.text]]
            rows.append(_row(method, budget, entries, comparison, i, ranks.get(i), times))
    return rows


def _by_language(frames: Sequence[pd.DataFrame], full: pd.DataFrame, budgets: Sequence[float]) -> list[np.ndarray]:
    """For each language `[cells + 1, queries]` of the headline measure, the full model last."""
    columns = [_over_trials(frame.loc[frame["budget"] == budget]) for frame in frames for budget in budgets]
    stacked = np.vstack([*columns, full[HEADLINE].to_numpy()])
    languages = full["language"].to_numpy()
    return [stacked[:, languages == language] for language in sorted(set(languages))]


def _over_trials(rows: pd.DataFrame) -> np.ndarray:
    """The headline measure of every query: trials follow one another, each with all queries in the same order."""
    return rows[HEADLINE].to_numpy().reshape(rows["trial"].nunique(), -1).mean(0)


def _row(
    method: Method,
    budget: float,
    entries: Sequence[dict],
    comparison: Comparison,
    cell: int,
    rank: int | None,
    times: Sequence[float],
) -> dict:
    ndcg, retention = comparison.ndcg_interval(cell), comparison.retention_interval(cell)
    return {
        "budget": budget,
        "rank": rank,
        "method": method.text,
        "ndcg@5": ndcg.value,
        "ndcg@5_interval": [ndcg.low, ndcg.high],
        "retention": retention.value,
        "retention_interval": [retention.low, retention.high],
        **_means(entries),
        "drift": method.pruner.budget_kind == "adaptive" and drifted(_means(entries)["realised"], budget),
        "drifting_data_sets": sum(entry["drift"] for entry in entries),
        "prune_ms_per_page": float(np.mean(times)) if times else None,
    }


def _full_row(full: Sequence) -> dict:
    figures = [data_set_mean([v.mean() for v in _by_language([], result.per_query, [])]) for result in full]
    entries = [result.summary[0] for result in full]
    return {
        "budget": 1.0,
        "rank": None,
        "method": FULL,
        "ndcg@5": float(benchmark_mean(figures)),
        "retention": 100.0,
    } | _means(entries)


def _means(entries: Sequence[dict]) -> dict[str, float]:
    """Means over data sets."""
    names = ("score_retention", "realised", "vectors_per_page", "bytes_per_page")
    return {name: float(benchmark_mean([entry[name] for entry in entries])) for name in names}
