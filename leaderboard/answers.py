"""What the front page says, all of it from the data: what to pick, what is new, where papers are contradicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from harness.evaluation.same_bytes import BEST
from harness.metrics.uncertainty import Interval
from leaderboard.groups import AgainKind
from leaderboard.lines import Line
from leaderboard.rows import Row
from leaderboard.views import View
from pruners.core.budget import STANDARD

PICK_AT = STANDARD[len(STANDARD) // 2]
"""The share of the bytes that the sentences are about; of the vectors, where sizes are not known."""
NEWEST = 8
"""Entries under what is new."""


@dataclass(frozen=True)
class Answer:
    """What to pick on one benchmark and backbone."""

    view: View
    budget: float
    line: Line
    row: Row
    tied: tuple[Line, ...]
    """Others that cannot be told from it."""
    rival: Line | None
    """What to compare it with: SAP, or the next best."""
    share: float | None = None
    """Of the full model's bytes, in which it is the best; none where the budget is all that is known."""

    @property
    def range(self) -> str:
        """The interval in whole percent, rounded outwards; a paper's figure as it stands."""
        if self.row.interval is None:
            return f"{self.row.retention:.1f} %"
        low, high = int(self.row.interval.low // 1), -int(-self.row.interval.high // 1)
        return f"{low} %" if low == high else f"{low}–{high} %"


def answer(view: View) -> Answer | None:
    """The best method that competes. Submitted measurements go before a paper's figures and these before own runs."""
    if not view.budgets:
        return None
    if found_by_bytes := _by_bytes(view):
        return found_by_bytes
    budget = PICK_AT if PICK_AT in view.budgets else view.default_budget
    able = [(line, row) for line, row in view.at(budget) if line.competes and row.retention is not None]
    submitted = [pair for pair in able if pair[0].ranked]
    found = [pair for pair in submitted if not pair[0].reported] or submitted or able
    if not found:
        return None
    line, row = found[0]
    tied = tuple(other for other, its in found[1:] if its.overall == row.overall is not None)
    return Answer(view, budget, line, row, tied, rival(view, line))


def _by_bytes(view: View) -> Answer | None:
    """The best in a tenth of the bytes, unless it is a run of one's own beside what is submitted."""
    same = next((one for one in view.same_bytes if one.share == PICK_AT), None)
    best = same.best.get(BEST) if same else None
    if same is None or best is None:
        return None
    line = view.by_label[best.label]
    if line.local and any(other.ranked for other in view.lines):
        return None
    tied = tuple(view.by_label[fit.label] for fit in same.tied)
    return Answer(view, best.budget, line, line.rows[best.budget], tied, rival(view, line), same.share)


def rival(view: View, line: Line) -> Line | None:
    """Another line to compare with: SAP where it is there, else the best one."""
    others = [other for other in view.lines if other is not line and any(row.covered for row in other.rows.values())]
    return next((other for other in others if other.method.name == "sap"), others[0] if others else None)


@dataclass(frozen=True)
class News:
    """Submissions of one day, by one submitter, on one view."""

    day: date
    view: View
    submitter: str
    status: str
    lines: tuple[Line, ...]
    again: int
    """How many of them are reproductions or corrections."""


def news(views: Sequence[View]) -> list[News]:
    """What was added last, newest first; runs of one's own are not submitted."""
    found: dict[tuple, list[tuple[Line, bool]]] = {}
    for view in views:
        for line in view.lines:
            seen = [(line.entry, False), *((a.entry, True) for a in line.again)]
            for entry, again in seen:
                origin = entry.submission.origin
                if entry.status != "local":
                    key = origin.submitted, view.slug, origin.submitter, entry.status
                    found.setdefault(key, []).append((line, again))
    by_slug = {view.slug: view for view in views}
    return [
        News(day, by_slug[slug], who, status, tuple(line for line, _ in found[key]), sum(a for _, a in found[key]))
        for key in sorted(found, key=lambda key: (-key[0].toordinal(), key[1:]))
        for day, slug, who, status in [key]
    ]


@dataclass(frozen=True)
class Reversal:
    """Two methods whose order in a paper is not the one that was measured."""

    ahead: Line
    """In the measured view."""
    behind: Line
    difference: Interval
    printed: tuple[float, float]
    """The paper's retentions: of what is ahead here, and of what is behind here."""


@dataclass(frozen=True)
class Contradiction:
    """A paper's order on one view beside the measured one on another, at one budget."""

    paper: View
    measured: View
    budget: float
    submitter: str
    pairs: int
    """Pairs of methods that both have."""
    reversals: tuple[Reversal, ...]

    @property
    def same_place(self) -> bool:
        return self.paper is self.measured


def contradictions(views: Sequence[View]) -> list[Contradiction]:
    """Where intervals leave no doubt that methods stand the other way round than in a paper. Widest gaps first."""
    found = []
    papers = [(view, printed) for view in views if (printed := _printed(view))]
    for measured in views:
        if measured.resamples is None:
            continue
        best: list[Contradiction] = []
        for paper, printed in papers:
            if paper.kind == measured.kind:
                best += _contradicted(paper, printed, measured)
        if best:
            found.append(max(best, key=lambda c: (c.same_place, len(c.reversals), c.budget)))
    return [one for one in found if one.reversals]


def _printed(view: View) -> dict[str, tuple[str, dict[float, float]]]:
    """method -> who printed it, and retention by budget."""
    found = {}
    for line in view.lines:
        entries = (
            [(line.entry, line.rows)] if line.reported else [(a.entry, a.rows) for a in line.others(AgainKind.paper)]
        )
        for entry, rows in entries:
            values = {b: row.retention for b, row in rows.items() if row.retention is not None}
            if values:
                found[line.method.name] = entry.submission.origin.submitter, values
    return found


def _contradicted(
    paper: View, printed: dict[str, tuple[str, dict[float, float]]], measured: View
) -> list[Contradiction]:
    found = []
    lines = {line.method.name: line for line in measured.lines if line.ranked and not line.reported}
    for budget in measured.budgets:
        here = {n: (who, values[budget]) for n, (who, values) in printed.items() if n in lines and budget in values}
        names = sorted(here, key=lambda n: -here[n][1])
        reversals = []
        for i, first in enumerate(names):
            for second in names[i + 1 :]:
                gap = measured.difference(lines[second], lines[first], budget)
                if gap is not None and gap.low > 0 and here[first][1] > here[second][1]:
                    printed_pair = here[second][1], here[first][1]
                    reversals.append(Reversal(lines[second], lines[first], gap, printed_pair))
        if len(names) > 1:
            reversals.sort(key=lambda r: -r.difference.value)
            pairs = len(names) * (len(names) - 1) // 2
            found.append(Contradiction(paper, measured, budget, here[names[0]][0], pairs, tuple(reversals)))
    return found
