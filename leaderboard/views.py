"""Views: one benchmark on one backbone, which is what can be compared. A view holds a line for each method.

Visual backbones and those that read text tokens never meet in a view, whatever their names are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from harness.metrics.uncertainty import Interval
from harness.submissions.report import CheckedSubmission
from harness.submissions.schema import BenchmarkFacts
from leaderboard.bootstrap import Resampled, resample
from leaderboard.groups import AgainKind, group
from leaderboard.lines import Line, labelled, make_line, with_differences
from leaderboard.rows import FULL, PARTS, Languages, Row, expected_languages
from leaderboard.same_bytes import SameBytes, same_bytes
from leaderboard.words import file_name
from pruners.core.budget import STANDARD
from pruners.core.codec_catalog import DEFAULT


@dataclass(frozen=True)
class Gaps:
    """Differences of retention between lines: `values[budget, a, b]` is (value, low, high); NaN where there is none."""

    labels: tuple[str, ...]
    values: np.ndarray


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
    gaps: Gaps | None = None
    """Kept when the per-query figures are dropped."""
    same_bytes: tuple[SameBytes, ...] = ()

    @property
    def nano(self) -> bool:
        return self.backbone == "nano"

    @cached_property
    def slug(self) -> str:
        return view_slug(self.benchmark, self.backbone, self.kind)

    @property
    def default_budget(self) -> float:
        """The middle one of the standard budgets that the view has, else the middle one of its own."""
        known = [b for b in STANDARD if b in self.budgets] or list(self.budgets)
        return known[len(known) // 2]

    @cached_property
    def codecs(self) -> tuple[str, ...]:
        """How vectors are stored, float16 first."""
        return tuple(sorted({line.codec for line in self.lines}, key=lambda codec: (codec != DEFAULT, codec)))

    @cached_property
    def by_label(self) -> dict[str, Line]:
        return {line.label: line for line in self.lines}

    @property
    def full(self) -> list[Row]:
        """The full models of the submissions that have one."""
        return [line.full for line in self.lines if "5" in line.full.ndcg]

    @property
    def full_ndcg(self) -> list[float]:
        return [row.ndcg["5"] for row in self.full]

    def difference(self, a: Line, b: Line, budget: float) -> Interval | None:
        """Retention of a minus that of b on the same resampled queries, if both are among the lines in `gaps`."""
        if self.gaps is None or not {a.label, b.label} <= set(self.gaps.labels):
            return None
        i, j = self.gaps.labels.index(a.label), self.gaps.labels.index(b.label)
        value, low, high = self.gaps.values[self.budgets.index(budget), i, j].tolist()
        return None if np.isnan(value) else Interval(value, low, high)

    def light(self, gaps: Gaps | None) -> View:
        """Without what is not needed once its own pages are written, so that a thousand views fit in memory."""
        seen: set[tuple[float, ...]] = set()
        lines = []
        for line in self.lines:
            key = tuple(figures.ndcg_5 for figures in line.full.data_sets.values())
            lines.append(line.light(key not in seen))
            seen.add(key)
        return replace(self, lines=tuple(lines), gaps=gaps)

    def at(self, budget: float) -> list[tuple[Line, Row]]:
        """Rows at a budget, best first; those without an average last."""
        found = [(line, line.rows[budget]) for line in self.lines if budget in line.rows]
        return sorted(found, key=lambda pair: -(pair[1].retention if pair[1].retention is not None else -1.0))

    def listed(self, budget: float) -> list[tuple[Line, Row]]:
        """Rows at a budget as the board lists them: one codec after the other, float16 first, each best first."""
        return sorted(self.at(budget), key=lambda pair: self.codecs.index(pair[0].codec))


def view_slug(benchmark: str, backbone: str, kind: str) -> str:
    """Names the files of a view."""
    return file_name(f"{benchmark}--{backbone}" + ("" if kind == "visual" else "--text"))


def shelf_order(kind: str, backbone: str, benchmark: str) -> tuple:
    """Real visual backbones first, then the nano model, then those that read text."""
    return kind != "visual", backbone == "nano", benchmark, backbone


def make_views(
    entries: Iterable[CheckedSubmission],
    pinned: Mapping[str, BenchmarkFacts] | None = None,
) -> list[View]:
    """All views, real backbones first. What a complete row has is a matter of the benchmark, over all backbones."""
    groups: dict[tuple[str, str, str], list[CheckedSubmission]] = {}
    by_benchmark: dict[str, list[CheckedSubmission]] = {}
    for entry in entries:
        s = entry.submission
        groups.setdefault((s.benchmark.name, s.backbone.kind, s.backbone.name), []).append(entry)
        by_benchmark.setdefault(s.benchmark.name, []).append(entry)
    expected = {name: expected_languages(found, (pinned or {}).get(name)) for name, found in by_benchmark.items()}
    order = sorted(groups, key=lambda key: shelf_order(key[1], key[2], key[0]))
    return _with_siblings([_view(*key, groups[key], expected[key[0]]) for key in order])


def _view(benchmark: str, kind: str, backbone: str, entries: Sequence[CheckedSubmission], expected: Languages) -> View:
    budgets = tuple(sorted({c.budget for e in entries for c in e.submission.cells if c.budget < FULL}))
    lines = labelled([make_line(found, budgets, expected) for found in group(entries)])
    local = [again for line in lines for again in line.others(AgainKind.local)]
    found = resample([line.measured for line in lines] + [again.measured for again in local], tuple(expected))
    places = {id(again): len(lines) + i for i, again in enumerate(local)}
    lines = [with_differences(line, i, places, found) for i, line in enumerate(lines)]
    lines = _with_areas(lines, found)
    for budget in budgets:
        lines = _with_ranks(lines, budget, found)
    same = same_bytes(lines, found)
    lines.sort(key=lambda line: (-(line.area or 0), line.label, line.entry.submission.id))
    resamples = found.resamples if found else None
    return View(benchmark, backbone, kind, tuple(expected), budgets, tuple(lines), resamples, same_bytes=same)


def _with_areas(lines: Sequence[Line], found: Resampled | None) -> list[Line]:
    areas = found.areas(STANDARD) if found else None
    return [replace(line, area_interval=areas.interval(i, FULL) if areas else None) for i, line in enumerate(lines)]


def _with_ranks(lines: Sequence[Line], budget: float, found: Resampled | None) -> list[Line]:
    """Among rows of one codec: at one budget another codec is another size. Within tracks, and over all of them."""
    overall: dict[int, int] = {}
    in_track: dict[int, int] = {}
    for codec in {line.codec for line in lines}:
        same = {i: li.rows[budget].retention for i, li in enumerate(lines) if budget in li.rows and li.codec == codec}
        overall |= (ranks := _ranks(lines, same, found, budget))
        for track in {line.method.track for line in lines}:
            inside = {i: value for i, value in same.items() if lines[i].method.track == track}
            in_track |= ranks if inside.keys() == same.keys() else _ranks(lines, inside, found, budget)
    return [
        replace(line, rows={**line.rows, budget: _ranked(line.rows[budget], i, in_track, overall, found)})
        if budget in line.rows
        else line
        for i, line in enumerate(lines)
    ]


def _ranked(row: Row, i: int, in_track: dict[int, int], overall: dict[int, int], found: Resampled | None) -> Row:
    interval = found.interval(i, row.budget) if found else None
    return replace(row, interval=interval, rank=in_track.get(i), overall=overall.get(i))


def _ranks(
    lines: Sequence[Line], values: dict[int, float | None], found: Resampled | None, budget: float
) -> dict[int, int]:
    """Measured lines in tied groups; a paper's among themselves, also those whose method has been measured since."""
    able = {i: value for i, value in values.items() if value is not None and lines[i].ranked}
    papers = [row for i in values for again in lines[i].others(AgainKind.paper) if (row := again.rows.get(budget))]
    printed = [row.retention for row in papers if row.retention is not None]
    reported = {i: value for i, value in able.items() if lines[i].reported}
    ranks = {i: 1 + sum(other > value for other in (*reported.values(), *printed)) for i, value in reported.items()}
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
