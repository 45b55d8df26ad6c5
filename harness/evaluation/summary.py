"""A run's figures over all its data sets: averages in MTEB's order, intervals, tied ranks. Derived, never stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from harness.evaluation.methods import FULL
from harness.evaluation.run_folder import RunFolder
from harness.metrics.results_table import ResultsTable, benchmark_mean
from harness.metrics.uncertainty import Comparison, Interval, compare_tables, tie_groups
from pruners.core.budget import UNPRUNED, drifted
from pruners.core.codec_catalog import DEFAULT


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
    @property
    def pruner_text(self) -> str: ...
    @property
    def codec_text(self) -> str: ...
    @property
    def unpruned(self) -> bool: ...
    @property
    def output(self) -> str: ...


def summarise(
    run: RunFolder, data_sets: Sequence[str], methods: Sequence[MeasuredMethod], budgets: Sequence[float]
) -> list[dict]:
    """One row for each method and budget that every data set has, best first within a budget; the full model first.

    Diagnostics are listed unranked. Ranks are among methods that one codec stores. After the budgets come codecs by
    themselves, then methods with a threshold of their own, each above its partners.
    """
    complete = [m for m in methods if all(run.has(data_set, m.slug) for data_set in data_sets)]
    full = run.read_table(data_sets, FULL)
    tables = {m.text: run.read_table(data_sets, m.slug) for m in complete}
    summaries = {m.text: [run.read_summary(data_set, m.slug) for data_set in data_sets] for m in complete}
    budget_of = {(m.text, b): budget for m in complete for b, budget in enumerate(_at(m, budgets))}
    cells = [(m, b) for m in complete for b in range(len(_at(m, budgets)))]
    asked = [(tables[m.text], budget_of[m.text, b]) for m, b in cells]
    comparison = compare_tables(asked, full, data_sets)
    rows = [_full_row(run, data_sets, full)]
    timings = run.read_json("timings.json") or {}

    def row(i: int, rank: int | None = None) -> dict:
        method, b = cells[i]
        times = [timings[data_set][method.text] for data_set in data_sets if method.text in timings.get(data_set, {})]
        entries = [summary[b] for summary in summaries[method.text]]
        budget = budget_of[method.text, b]
        if budget is None:
            budget = float(benchmark_mean([entry["budget"] for entry in entries]))
        return _row(method, budget, entries, comparison, i, rank, times)

    for budget in (*budgets, UNPRUNED):
        here = [i for i, (method, b) in enumerate(cells) if budget_of[method.text, b] == budget]
        ranks: dict[int, int] = {}
        for codec in dict.fromkeys(cells[i][0].codec_text for i in here):
            ranked = [i for i in here if cells[i][0].codec_text == codec and not cells[i][0].diagnostic]
            ranks |= dict(zip(ranked, tie_groups(comparison, ranked), strict=True))
        rows += [row(i, ranks.get(i)) for i in sorted(here, key=lambda i: -comparison.retention[i])]
    at = {method.text: i for i, (method, _) in enumerate(cells) if _alone(method)}
    for method in [m for m in complete if _alone(m)]:
        gap = comparison.difference(at[method.partner_of], at[method.text]) if method.partner_of in at else None
        own = {"own_threshold": method.own_threshold, "partner_of": method.partner_of}
        rows.append({**row(at[method.text]), **own, "minus_partner": gap and [gap.value, gap.low, gap.high]})
    return rows


def differences(
    run: RunFolder, data_sets: Sequence[str], a: MeasuredMethod, b: MeasuredMethod, budgets: Sequence[float]
) -> list[tuple[float, Interval]]:
    """At each budget: the retention of method a minus that of method b, on the same resampled queries."""
    full, *tables = (run.read_table(data_sets, slug) for slug in (FULL, a.slug, b.slug))
    comparison = compare_tables([(table, budget) for table in tables for budget in budgets], full, data_sets)
    return [(budget, comparison.difference(i, len(budgets) + i)) for i, budget in enumerate(budgets)]


def _at(method: MeasuredMethod, budgets: Sequence[float]) -> Sequence[float | None]:
    """The budgets of a method's rows; None: the ratio of its own that it has on each data set."""
    if _alone(method):
        return (None,)
    return (UNPRUNED,) if method.unpruned else budgets


def _alone(method: MeasuredMethod) -> bool:
    """Whether a method has one cell at a ratio of its own, not the run's budgets."""
    return method.own_threshold or method.partner_of is not None


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
        "pruner": method.pruner_text,
        "codec": method.codec_text,
        "output": method.output,
        "ndcg@5": ndcg.value,
        "ndcg@5_interval": [ndcg.low, ndcg.high],
        "retention": retention.value,
        "retention_interval": [retention.low, retention.high],
        **_means(entries),
        "drift": method.budget_kind == "adaptive" and drifted(_means(entries)["realised"], budget),
        "drifting_data_sets": sum(entry["drift"] for entry in entries),
        "prune_ms_per_page": float(np.mean(times)) if times else None,
    }


def _full_row(run: RunFolder, data_sets: Sequence[str], full: ResultsTable) -> dict:
    figures = [full.mean(data_set, 1.0) for data_set in data_sets]
    entries = [run.read_summary(data_set, FULL)[0] for data_set in data_sets]
    return {
        "budget": 1.0,
        "rank": None,
        "method": FULL,
        "pruner": FULL,
        "codec": DEFAULT,
        "output": "subset",
        "ndcg@5": float(benchmark_mean(figures)),
        "retention": 100.0,
    } | _means(entries)


def _means(entries: Sequence[dict]) -> dict[str, float]:
    """Means over data sets."""
    names = ("score_retention", "realised", "vectors_per_page", "bytes_per_page")
    return {name: float(benchmark_mean([entry[name] for entry in entries])) for name in names}
