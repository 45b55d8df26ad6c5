"""Views: one benchmark on one backbone, which is what can be compared. A view holds a line for each submission.

Visual backbones and those that read text tokens never meet in a view, whatever their names are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from harness.metrics.uncertainty import Interval
from harness.progress import Advance
from harness.submissions.schema import BenchmarkFacts, MethodFacts
from harness.submissions.validation import CheckedSubmission
from leaderboard import headline
from leaderboard.bootstrap import MeasuredScores, Resampled, measured, resample
from leaderboard.rows import FULL, PARTS, UNRANKED, Languages, Row, expected_languages, make_row
from leaderboard.words import file_name
from pruners.core.budget import STANDARD


@dataclass(frozen=True)
class Line:
    """A submission in a view: a row a budget, and its headline over budgets."""

    entry: CheckedSubmission
    rows: dict[float, Row]
    full: Row
    measured: MeasuredScores | None = None
    area: float | None = None
    area_interval: Interval | None = None
    area_rank: int | None = None

    @property
    def method(self) -> MethodFacts:
        return self.entry.submission.method

    @property
    def reported(self) -> bool:
        """A paper's figures: nobody can say which of them are tied, so they are ranked apart, in plain order."""
        return self.entry.status == "reported"

    @property
    def ranked(self) -> bool:
        return self.method.track not in UNRANKED and self.entry.status != "unpinned"


@dataclass(frozen=True)
class View:
    """One benchmark on one backbone."""

    benchmark: str
    backbone: str
    kind: str
    data_sets: tuple[str, ...]
    budgets: tuple[float, ...]
    lines: tuple[Line, ...]
    resamples: int | None

    @property
    def nano(self) -> bool:
        return self.backbone == "nano"

    @cached_property
    def slug(self) -> str:
        return file_name(f"{self.benchmark}--{self.backbone}" + ("" if self.kind == "visual" else "--text"))

    @property
    def default_budget(self) -> float:
        """The middle one of the standard budgets that the view has, else the middle one of its own."""
        known = [b for b in STANDARD if b in self.budgets] or list(self.budgets)
        return known[len(known) // 2]

    @property
    def full(self) -> list[Row]:
        """The full models of the submissions that have one."""
        return [line.full for line in self.lines if "5" in line.full.ndcg]

    @property
    def full_ndcg(self) -> list[float]:
        return [row.ndcg["5"] for row in self.full]

    def at(self, budget: float) -> list[tuple[Line, Row]]:
        """Rows at a budget, best first; those without an average last."""
        found = [(line, line.rows[budget]) for line in self.lines if budget in line.rows]
        return sorted(found, key=lambda pair: -(pair[1].retention if pair[1].retention is not None else -1.0))


def make_views(
    entries: Iterable[CheckedSubmission],
    pinned: Mapping[str, BenchmarkFacts] | None = None,
    advance: Advance = lambda count: None,
) -> list[View]:
    """All views, real backbones first. What a complete row has is a matter of the benchmark, over all backbones."""
    groups: dict[tuple[str, str, str], list[CheckedSubmission]] = {}
    by_benchmark: dict[str, list[CheckedSubmission]] = {}
    for entry in entries:
        s = entry.submission
        groups.setdefault((s.benchmark.name, s.backbone.kind, s.backbone.name), []).append(entry)
        by_benchmark.setdefault(s.benchmark.name, []).append(entry)
    expected = {name: expected_languages(found, (pinned or {}).get(name)) for name, found in by_benchmark.items()}
    order = sorted(groups, key=lambda key: (key[1] != "visual", key[2] == "nano", key))
    views = []
    for key in order:
        views.append(_view(*key, groups[key], expected[key[0]]))
        advance(len(groups[key]))
    return _with_siblings(views)


def _view(benchmark: str, kind: str, backbone: str, entries: Sequence[CheckedSubmission], expected: Languages) -> View:
    budgets = tuple(sorted({c.budget for e in entries for c in e.submission.cells if c.budget < FULL}))
    lines = [_line(entry, budgets, expected) for entry in entries]
    found = resample([line.measured for line in lines], tuple(expected))
    lines = _with_areas(lines, found)
    for budget in budgets:
        lines = _with_ranks(lines, budget, found)
    lines.sort(key=lambda line: (-(line.area or 0), line.method.name, line.entry.submission.id))
    return View(benchmark, backbone, kind, tuple(expected), budgets, tuple(lines), found.resamples if found else None)


def _line(entry: CheckedSubmission, budgets: Sequence[float], expected: Languages) -> Line:
    have = {cell.budget for cell in entry.submission.cells}
    rows = {budget: make_row(entry, budget, expected) for budget in budgets if budget in have}
    whole = bool(rows) and all(row.complete for row in rows.values()) and entry.status != "reported"
    area = headline.area({budget: row.retention for budget, row in rows.items()})
    return Line(entry, rows, make_row(entry, FULL, expected), measured(entry, budgets) if whole else None, area)


def _with_areas(lines: Sequence[Line], found: Resampled | None) -> list[Line]:
    areas = found.areas(STANDARD) if found else None
    ranks = _ranks(lines, {i: line.area for i, line in enumerate(lines)}, areas, FULL)
    return [
        replace(line, area_interval=areas.interval(i, FULL) if areas else None, area_rank=ranks.get(i))
        for i, line in enumerate(lines)
    ]


def _with_ranks(lines: Sequence[Line], budget: float, found: Resampled | None) -> list[Line]:
    values = {i: line.rows[budget].retention for i, line in enumerate(lines) if budget in line.rows}
    ranks = _ranks(lines, values, found, budget)
    tracks = {line.method.track for line in lines}
    in_track: dict[int, int] = ranks if len(tracks) == 1 else {}
    for track in tracks if len(tracks) > 1 else ():
        same = {i: value for i, value in values.items() if lines[i].method.track == track}
        in_track |= _ranks(lines, same, found, budget)
    return [
        replace(line, rows={**line.rows, budget: _ranked(line.rows[budget], i, ranks, in_track, found)})
        if budget in line.rows
        else line
        for i, line in enumerate(lines)
    ]


def _ranked(row: Row, i: int, ranks: dict[int, int], in_track: dict[int, int], found: Resampled | None) -> Row:
    interval = found.interval(i, row.budget) if found else None
    return replace(row, interval=interval, rank=ranks.get(i), rank_in_track=in_track.get(i))


def _ranks(
    lines: Sequence[Line], values: dict[int, float | None], found: Resampled | None, budget: float
) -> dict[int, int]:
    """Measured lines in tied groups; reported ones among themselves, where only equal figures share a rank."""
    able = {i: value for i, value in values.items() if value is not None and lines[i].ranked}
    reported = {i: value for i, value in able.items() if lines[i].reported}
    ranks = {i: 1 + sum(other > value for other in reported.values()) for i, value in reported.items()}
    if found:
        ranks |= found.ranks([i for i in able if i not in reported], budget)
    return ranks


def _with_siblings(views: Sequence[View]) -> list[View]:
    """Editions that are benchmarks of their own, such as vidore-v1 and vidore-v2: rows show both retentions."""
    known: dict[tuple, float] = {}
    for view in views:
        for line in view.lines:
            for row in line.rows.values():
                for part, value in row.parts.items():
                    known.setdefault(_sibling(view, line, row, part), value)
    return [
        replace(view, lines=tuple(replace(li, rows=_with_parts(view, li, known)) for li in view.lines))
        for view in views
    ]


def _sibling(view: View, line: Line, row: Row, part: str) -> tuple:
    """The same method and backbone at the same budget, told by who measured: what must agree to stand in one row."""
    family = re.sub(r"-v[12]$", "", view.benchmark)
    return family, view.kind, view.backbone, line.method.name, line.reported, row.budget, part


def _with_parts(view: View, line: Line, known: dict[tuple, float]) -> dict[float, Row]:
    return {
        budget: replace(row, parts={p: known[key] for p in PARTS if (key := _sibling(view, line, row, p)) in known})
        if row.complete
        else row
        for budget, row in line.rows.items()
    }
