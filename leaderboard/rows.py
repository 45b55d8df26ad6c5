"""A submission at a budget as one row: averages over data sets, taken in the one order that `results_table` has.

Nothing here is stored in a submission: rows are derived whenever the site is built. A row that lacks a data set or a
language has no averages at all, because a mean over fewer data sets is a figure of another benchmark.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from harness.evaluation.index_size import own_bytes
from harness.metrics.results_table import benchmark_mean, data_set_mean, retention
from harness.metrics.uncertainty import Interval
from harness.submissions.report import CheckedSubmission
from harness.submissions.schema import BenchmarkFacts, Cell, Track
from pruners.core.budget import drifted

FULL = 1.0
CUTOFFS = ("1", "5", "10", "50", "100")
PARTS = ("v1", "v2")
UNRANKED = (Track.diagnostic, Track.trained)
"""An oracle has seen the queries; a trained method has changed the model. Neither competes with training-free ones."""

Languages = Mapping[str, frozenset[str]]
"""data set -> the languages a complete row has of it; empty where one figure stands for all."""


class RowFigures(NamedTuple):
    """One data set at one budget, languages averaged; NaN where a submission does not say."""

    ndcg_1: float
    ndcg_5: float
    ndcg_10: float
    ndcg_50: float
    ndcg_100: float
    retention: float
    score_retention: float
    realised: float
    vectors: float
    bytes: float
    milliseconds: float

    def ndcg(self, cutoff: str) -> float:
        return float(getattr(self, f"ndcg_{cutoff}"))


@dataclass(frozen=True)
class Row:
    """One submission at one budget. Averages are there only if every data set is."""

    budget: float
    data_sets: Mapping[str, RowFigures]
    expected: int
    covered: int
    """Data sets that are there; `data_sets` is dropped when a view's own pages are written, this is not."""
    ndcg: Mapping[str, float] = field(default_factory=dict)
    retention: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    """Retention on the first and second edition of a benchmark, where it has editions."""
    score_retention: float | None = None
    realised: float | None = None
    vectors: float | None = None
    bytes: float | None = None
    own_bytes: float | None = None
    """Of a page without its share of what all pages share, so that it holds for a corpus of any size."""
    shared_bytes: int = 0
    milliseconds: float | None = None
    drift: bool = False
    interval: Interval | None = None
    rank: int | None = None
    """Within its track."""
    overall: int | None = None
    """Among the methods of all tracks that are ranked."""
    quoted: float | None = None
    """Retention over other data sets than the benchmark's, where a paper gives nothing else. Never ranked."""

    @property
    def coverage(self) -> str:
        """What stands in place of an average: 13/14; or a paper's average over other data sets, marked as such."""
        here = f"{self.covered}/{self.expected}"
        return here if self.quoted is None else f"{self.quoted:.1f} quoted"

    def retention_on(self, data_set: str) -> float | None:
        return known(self.data_sets[data_set].retention) if data_set in self.data_sets else None

    def index_bytes(self, pages: float) -> float | None:
        """Of an index of so many pages."""
        return None if self.own_bytes is None else self.own_bytes * pages + self.shared_bytes

    @property
    def complete(self) -> bool:
        return self.covered == self.expected


def expected_languages(entries: Sequence[CheckedSubmission], pinned: BenchmarkFacts | None = None) -> Languages:
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


def make_row(entry: CheckedSubmission, budget: float, expected: Languages) -> Row:
    """The row of a submission at a budget."""
    cells = _by_data_set(entry, budget)
    found = {
        name: RowFigures(*_mean_of_languages([_of_cell(cell) for cell in cells[name]]))
        for name, languages in expected.items()
        if _whole(entry, cells.get(name, ()), languages)
    }
    found = _with_retention(found, _by_data_set(entry, FULL))
    row = Row(budget, found, len(expected), len(found))
    if not row.complete:
        return replace(row, quoted=_quoted(entry, cells) if not found else None)
    mean = RowFigures(*benchmark_mean(list(found.values())))
    shared = entry.submission.shared_bytes if budget < FULL else 0
    pages = {data_set.name: data_set.pages for data_set in entry.submission.benchmark.data_sets}
    counts = [pages.get(name) or 0 for name in found]
    return replace(
        row,
        ndcg={k: value for k in CUTOFFS if (value := known(mean.ndcg(k))) is not None},
        retention=known(mean.retention),
        parts=_parts(entry.submission.benchmark.name, found),
        score_retention=known(mean.score_retention),
        realised=known(mean.realised),
        vectors=known(mean.vectors),
        bytes=known(mean.bytes),
        own_bytes=known(own_bytes(mean.bytes, shared, counts)),
        shared_bytes=shared,
        milliseconds=known(mean.milliseconds),
        drift=entry.submission.method.adaptive and drifted(mean.realised, budget),
    )


def _quoted(entry: CheckedSubmission, cells: Mapping[str, Sequence[Cell]]) -> float | None:
    """The only figure that a paper gives, if it is of no data set of the benchmark."""
    values = [cell.retention for found in cells.values() for cell in found]
    return values[0] if entry.status == "reported" and len(values) == 1 else None


def known(value: float) -> float | None:
    """A figure, or none where a data set had none: NaN goes through every mean."""
    return None if math.isnan(value) else float(value)


def part_of(benchmark: str, data_set: str) -> str | None:
    """The edition (v1, v2) a data set belongs to, from its own name or its benchmark's."""
    if data_set.startswith("Vidore"):  # MTEB's task names
        return "v2" if data_set.startswith("Vidore2") else "v1"
    for name in (data_set, benchmark):
        if found := re.search(r"-(v[12])(?:/|$)", name):
            return found[1]
    return None


def _by_data_set(entry: CheckedSubmission, budget: float) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = {}
    for cell in entry.submission.cells:
        if cell.budget == budget:
            found.setdefault(cell.data_set, []).append(cell)
    return found


def _whole(entry: CheckedSubmission, cells: Sequence[Cell], expected: frozenset[str]) -> bool:
    """Whether every language is there. Papers print the mean over languages: one figure then stands for all."""
    have = {cell.language for cell in cells}
    return have == (expected or {""}) or (entry.status == "reported" and have == {""})


def _with_retention(found: Mapping[str, RowFigures], full: Mapping[str, Sequence[Cell]]) -> dict[str, RowFigures]:
    """Retention as printed, where the NDCG beside it is rounded; else relative to the full model's cells."""
    upper = [_ndcg_5(full[name]) if name in full else math.nan for name in found]
    derived = retention([figures.ndcg_5 for figures in found.values()], upper).tolist()
    return {
        name: figures._replace(retention=value) if math.isnan(figures.retention) else figures
        for (name, figures), value in zip(found.items(), derived, strict=True)
    }


def _ndcg_5(cells: Sequence[Cell]) -> float:
    return float(data_set_mean([cell.ndcg.get("5", math.nan) for cell in cells]))


def _of_cell(cell: Cell) -> tuple[float, ...]:
    """The fields of `RowFigures`; NaN where a cell has none."""
    ndcg = (cell.ndcg.get("1"), cell.ndcg.get("5"), cell.ndcg.get("10"), cell.ndcg.get("50"), cell.ndcg.get("100"))
    size = (cell.realised, cell.vectors_per_page, cell.bytes_per_page, cell.prune_ms)
    return tuple(math.nan if v is None else v for v in (*ndcg, cell.retention, cell.score_retention, *size))


def _mean_of_languages(cells: Sequence[tuple[float, ...]]) -> Iterable[float]:
    return cells[0] if len(cells) == 1 else data_set_mean(cells)


def _parts(benchmark: str, found: Mapping[str, RowFigures]) -> dict[str, float]:
    parts = {}
    for part in PARTS:
        inside = [figures.retention for name, figures in found.items() if part_of(benchmark, name) == part]
        if inside and (value := known(float(benchmark_mean(inside)))) is not None:
            parts[part] = value
    return parts
