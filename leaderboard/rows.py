"""A submission at a budget as one row: averages over data sets, taken in the one order that `aggregate` knows.

Nothing here is stored in a submission: rows are derived whenever the site is built. A row that lacks a data set or a
language has no averages at all, because a mean over fewer data sets is a figure of another benchmark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from harness.evaluation.results import drifted
from harness.metrics.aggregate import benchmark_mean, data_set_mean, retention
from harness.metrics.uncertainty import Interval
from harness.submissions.entry import Entry
from harness.submissions.schema import Benchmark, Cell, Track

FULL = 1.0
CUTOFFS = ("1", "5", "10", "50", "100")
PARTS = ("v1", "v2")
UNRANKED = (Track.diagnostic, Track.trained)
"""An oracle has seen the queries; a trained method has changed the model. Neither competes with training-free ones."""

Languages = Mapping[str, frozenset[str]]
"""data set -> the languages a complete row has of it; empty where one figure stands for all."""


@dataclass(frozen=True)
class Figures:
    """One data set at one budget, languages averaged."""

    ndcg: Mapping[str, float]
    retention: float | None
    score_retention: float | None
    realised: float | None
    vectors: float | None
    bytes: float | None
    milliseconds: float | None


@dataclass(frozen=True)
class Row:
    """One submission at one budget. Averages are there only if every data set is."""

    budget: float
    data_sets: Mapping[str, Figures]
    expected: int
    ndcg: Mapping[str, float] = field(default_factory=dict)
    retention: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    """Retention on the first and second edition of a benchmark, where it has editions."""
    score_retention: float | None = None
    realised: float | None = None
    vectors: float | None = None
    bytes: float | None = None
    milliseconds: float | None = None
    drift: bool = False
    interval: Interval | None = None
    rank: int | None = None
    rank_in_track: int | None = None

    @property
    def complete(self) -> bool:
        return len(self.data_sets) == self.expected


def expected_languages(entries: Sequence[Entry], pinned: Benchmark | None = None) -> Languages:
    """What a complete row has: the pinned data sets and languages, else all that any submission names."""
    if pinned is not None:
        return {data_set.name: frozenset(data_set.languages) for data_set in pinned.data_sets}
    found: dict[str, set[str]] = {}
    for entry in entries:
        for data_set in entry.submission.benchmark.data_sets:
            found.setdefault(data_set.name, set()).update(data_set.languages)
        for cell in entry.submission.cells:
            found.setdefault(cell.data_set, set()).update({cell.language} - {""})
    return {name: frozenset(found[name]) for name in sorted(found)}


def make_row(entry: Entry, budget: float, expected: Languages) -> Row:
    """The row of a submission at a budget."""
    cells = _by_data_set(entry, budget)
    full = _by_data_set(entry, FULL)
    found = {
        name: _figures(cells[name], full.get(name, []))
        for name in expected
        if _whole(entry, cells.get(name, ()), expected[name])
    }
    row = Row(budget, found, len(expected))
    if not row.complete:
        return row
    realised = _mean(found, lambda f: f.realised)
    return Row(
        budget,
        found,
        len(expected),
        ndcg={k: value for k in CUTOFFS if (value := _mean_ndcg(found, k)) is not None},
        retention=_mean(found, lambda f: f.retention),
        parts=_parts(entry.submission.benchmark.name, found),
        score_retention=_mean(found, lambda f: f.score_retention),
        realised=realised,
        vectors=_mean(found, lambda f: f.vectors),
        bytes=_mean(found, lambda f: f.bytes),
        milliseconds=_mean(found, lambda f: f.milliseconds),
        drift=entry.submission.method.adaptive and realised is not None and drifted(realised, budget),
    )


def part_of(benchmark: str, data_set: str) -> str | None:
    """The edition (v1, v2) a data set belongs to, from its own name or its benchmark's."""
    if data_set.startswith("Vidore"):  # MTEB's task names
        return "v2" if data_set.startswith("Vidore2") else "v1"
    for name in (data_set, benchmark):
        if found := re.search(r"-(v[12])(?:/|$)", name):
            return found[1]
    return None


def _by_data_set(entry: Entry, budget: float) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = {}
    for cell in entry.submission.cells:
        if cell.budget == budget:
            found.setdefault(cell.data_set, []).append(cell)
    return found


def _whole(entry: Entry, cells: Sequence[Cell], expected: frozenset[str]) -> bool:
    """Whether every language is there. Papers print the mean over languages: one figure then stands for all."""
    have = {cell.language for cell in cells}
    return have == (expected or {""}) or (entry.status == "reported" and have == {""})


def _figures(cells: Sequence[Cell], full: Sequence[Cell]) -> Figures:
    def mean(get: Callable[[Cell], float | None], cells: Sequence[Cell] = cells) -> float | None:
        values = [value for cell in cells if (value := get(cell)) is not None]
        return float(data_set_mean(values)) if values and len(values) == len(cells) else None

    ndcg = {k: value for k in CUTOFFS if (value := mean(lambda c: c.ndcg.get(k))) is not None}  # type: ignore[call-overload]  # noqa: B023
    upper = mean(lambda c: c.ndcg.get("5"), full)
    kept = mean(lambda c: c.retention)  # as printed, where the NDCG beside it is rounded
    if kept is None and upper and "5" in ndcg:
        kept = float(retention(ndcg["5"], upper))
    return Figures(
        ndcg,
        kept,
        mean(lambda c: c.score_retention),
        mean(lambda c: c.realised),
        mean(lambda c: c.vectors_per_page),
        mean(lambda c: c.bytes_per_page),
        mean(lambda c: c.prune_ms),
    )


def _parts(benchmark: str, found: Mapping[str, Figures]) -> dict[str, float]:
    parts = {}
    for part in PARTS:
        inside = {name: figures for name, figures in found.items() if part_of(benchmark, name) == part}
        if inside and (value := _mean(inside, lambda f: f.retention)) is not None:
            parts[part] = value
    return parts


def _mean_ndcg(found: Mapping[str, Figures], cutoff: str) -> float | None:
    return _mean(found, lambda f: f.ndcg.get(cutoff))


def _mean(found: Mapping[str, Figures], get: Callable[[Figures], float | None]) -> float | None:
    """The mean over data sets; none if one of them has no such figure."""
    values = [get(figures) for figures in found.values()]
    known = [value for value in values if value is not None]
    return float(benchmark_mean(known)) if known and len(known) == len(values) else None
