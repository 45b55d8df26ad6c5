"""A run's figures over all its data sets: averages in MTEB's order, intervals, tied ranks. Derived, never stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from harness.evaluation.methods import FULL
from harness.evaluation.run_folder import HEADLINE, RunFolder, StoredFigures
from harness.metrics.aggregate import benchmark_mean, data_set_mean
from harness.metrics.uncertainty import Comparison, Interval, compare, tie_groups
from pruners.core.budget import drifted


class MeasuredMethod(Protocol):
    """What an average needs to know of a method."""

    @property
    def text(self) -> str: ...
    @property
    def slug(self) -> str: ...
    @property
    def diagnostic(self) -> bool: ...
    @property
    def budget_kind(self) -> str: ...
    @property
    def own_threshold(self) -> bool: ...
    @property
    def partner_of(self) -> str | None: ...


def summarise(
    run: RunFolder, data_sets: Sequence[str], methods: Sequence[MeasuredMethod], budgets: Sequence[float]
) -> list[dict]:
    """One row for each method and budget that every data set has, best first within a budget; the full model first.

    Diagnostics are listed unranked. Native methods and their partners come last, each partner below its own.
    """
    complete = [m for m in methods if all(run.has(data_set, m.slug) for data_set in data_sets)]
    full = [run.read_figures(data_set, FULL) for data_set in data_sets]
    found = {m.text: [run.read_figures(data_set, m.slug) for data_set in data_sets] for m in complete}
    cells = [(m, b) for m in complete for b in range(1 if _alone(m) else len(budgets))]
    comparison = compare(
        [_by_language([(found[m.text][t], b) for m, b in cells], full[t]) for t in range(len(data_sets))]
    )
    rows = [_full_row(full)]
    timings = run.read_json("timings.json") or {}

    def row(i: int, rank: int | None = None) -> dict:
        method, b = cells[i]
        times = [timings[data_set][method.text] for data_set in data_sets if method.text in timings.get(data_set, {})]
        entries = [result.summary[b] for result in found[method.text]]
        budget = benchmark_mean([entry["budget"] for entry in entries]) if _alone(method) else budgets[b]
        return _row(method, float(budget), entries, comparison, i, rank, times)

    for b in range(len(budgets)):
        here = [i for i, (method, which) in enumerate(cells) if which == b and not _alone(method)]
        ranked = [i for i in here if not cells[i][0].diagnostic]
        ranks = dict(zip(ranked, tie_groups(comparison, ranked), strict=True))
        rows += [row(i, ranks.get(i)) for i in sorted(here, key=lambda i: -comparison.retention[i])]
    at = {method.text: i for i, (method, _) in enumerate(cells) if _alone(method)}
    for method in [m for m in complete if _alone(m)]:
        gap = comparison.difference(at[method.partner_of], at[method.text]) if method.partner_of in at else None
        own = {"own_threshold": method.own_threshold, "partner_of": method.partner_of}
        rows.append({**row(at[method.text]), **own, "native_minus_partner": gap and [gap.value, gap.low, gap.high]})
    return rows


def differences(
    run: RunFolder, data_sets: Sequence[str], a: MeasuredMethod, b: MeasuredMethod, budgets: Sequence[float]
) -> list[tuple[float, Interval]]:
    """At each budget: the retention of method a minus that of method b, on the same resampled queries."""
    full = [run.read_figures(data_set, FULL) for data_set in data_sets]
    found = [[run.read_figures(data_set, method.slug) for data_set in data_sets] for method in (a, b)]
    cells = [(m, i) for m in range(2) for i in range(len(budgets))]
    comparison = compare([_by_language([(found[m][t], i) for m, i in cells], full[t]) for t in range(len(data_sets))])
    return [(budget, comparison.difference(i, len(budgets) + i)) for i, budget in enumerate(budgets)]


def _alone(method: MeasuredMethod) -> bool:
    """Whether a method has one cell at a ratio of its own, not the run's budgets."""
    return method.own_threshold or method.partner_of is not None


def _by_language(cells: Sequence[tuple[StoredFigures, int]], full: StoredFigures) -> list[np.ndarray]:
    """For each language `[cells + 1, queries]` of the headline measure, the full model last."""
    stacked = np.vstack([*(_over_trials(figures, b) for figures, b in cells), full.columns[HEADLINE]])
    languages = full.columns["language"]
    return [stacked[:, languages == language] for language in sorted(set(languages))]


def _over_trials(figures: StoredFigures, b: int) -> np.ndarray:
    """The headline measure of every query: trials follow one another, each with all queries in the same order."""
    rows = figures.columns["budget"] == figures.summary[b]["budget"]
    trials = len(np.unique(figures.columns["trial"][rows]))
    return figures.columns[HEADLINE][rows].reshape(trials, -1).mean(0)


def _row(
    method: MeasuredMethod,
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
        "drift": method.budget_kind == "adaptive" and drifted(_means(entries)["realised"], budget),
        "drifting_data_sets": sum(entry["drift"] for entry in entries),
        "prune_ms_per_page": float(np.mean(times)) if times else None,
    }


def _full_row(full: Sequence[StoredFigures]) -> dict:
    figures = [data_set_mean([v.mean() for v in _by_language([], result)]) for result in full]
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
