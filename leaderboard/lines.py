"""A line of a view: one method, as it was submitted, and whoever else measured the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.metrics.uncertainty import Interval
from harness.submissions.names import slug
from harness.submissions.report import CheckedSubmission
from harness.submissions.schema import MethodFacts, Track
from leaderboard import headline
from leaderboard.bootstrap import MeasuredScores, Resampled, measured
from leaderboard.groups import LOCAL, AgainKind, RowGroup
from leaderboard.rows import FULL, UNRANKED, Languages, Row, make_row
from pruners.core.codec_catalog import DEFAULT

UNSURE = ("reported", "unpinned")
"""Statuses of figures that nobody has measured here, or on data that nobody vouches for."""


@dataclass(frozen=True)
class Again:
    """Another measurement of a line's method. It is shown as a difference, and takes no rank."""

    kind: AgainKind
    entry: CheckedSubmission
    rows: dict[float, Row]
    measured: MeasuredScores | None
    differences: dict[float, Interval] = field(default_factory=dict)
    """Retention minus that of the line, by budget; bounds are the value itself where nothing was resampled."""


@dataclass(frozen=True)
class Line:
    """A method in a view: a row a budget, its headline over budgets, and who else measured it."""

    entry: CheckedSubmission
    rows: dict[float, Row]
    full: Row
    measured: MeasuredScores | None = None
    again: tuple[Again, ...] = ()
    label: str = ""
    """The method's name; with the submission's id where two lines of a view would share it."""
    area: float | None = None
    area_interval: Interval | None = None

    @property
    def method(self) -> MethodFacts:
        return self.entry.submission.method

    @property
    def codec(self) -> str:
        """How its vectors are stored."""
        found = self.entry.submission.codec
        return found.expression if found else DEFAULT

    @property
    def stored(self) -> str:
        """The codec, or that a method stores vectors in a form of its own."""
        return "own" if self.codec == DEFAULT and self.method.track is Track.quantised else self.codec

    @property
    def base(self) -> str:
        """The method's name, whatever stores it: what its page is called."""
        return self.method.name if self.codec == DEFAULT else slug(_text(self.method).partition(" | ")[0])

    @property
    def unpruned(self) -> bool:
        """A codec alone: all vectors are kept."""
        return self.codec != DEFAULT and self.method.expression == f"full | {self.codec}"

    @property
    def reported(self) -> bool:
        """A paper's figures: nobody can say which of them are tied, so they are ranked apart, in plain order."""
        return self.entry.status == "reported"

    @property
    def local(self) -> bool:
        return self.entry.status == LOCAL

    @property
    def competes(self) -> bool:
        """Whether it neither sees queries nor trains."""
        return self.method.track not in UNRANKED

    @property
    def ranked(self) -> bool:
        return self.competes and not self.local and self.entry.status != "unpinned"

    @property
    def compared(self) -> bool:
        """Whether it may be named as the best for its size: measured here or by a run of one's own, and competing."""
        return self.competes and self.entry.status not in UNSURE

    def light(self, first_of_its_full_model: bool) -> Line:
        """Without per-query figures, cells and data sets; one line of each full model keeps the full model's."""
        again = tuple(replace(a, entry=_light(a.entry), measured=None, rows=_without_sets(a.rows)) for a in self.again)
        entry, full = _light(self.entry, first_of_its_full_model), self.full
        if not first_of_its_full_model:
            full = replace(full, data_sets={})
        return replace(self, entry=entry, rows=_without_sets(self.rows), full=full, measured=None, again=again)

    def others(self, *kinds: AgainKind) -> list[Again]:
        return [again for again in self.again if again.kind in kinds]

    @property
    def times(self) -> int:
        """How many submissions measured it, each by somebody else."""
        return 1 + len(self.others(AgainKind.reproduction, AgainKind.again))

    @property
    def reproduced_by(self) -> str:
        """Who else measured it and agrees."""
        return ", ".join(again.entry.submission.origin.submitter for again in self.others(AgainKind.reproduction))


def _light(entry: CheckedSubmission, with_full: bool = False) -> CheckedSubmission:
    cells = tuple(cell for cell in entry.submission.cells if cell.budget == FULL) if with_full else ()
    return replace(entry, scores=None, submission=entry.submission.model_copy(update={"cells": cells}))


def _without_sets(rows: Mapping[float, Row]) -> dict[float, Row]:
    return {budget: replace(row, data_sets={}) for budget, row in rows.items()}


def make_line(found: RowGroup, budgets: Sequence[float], expected: Languages) -> Line:
    rows, scores = _figures(found.shown, budgets, expected)
    again = tuple(Again(kind, entry, *_figures(entry, budgets, expected)) for kind, entry in found.others)
    area = headline.area({budget: row.retention for budget, row in rows.items()})
    return Line(found.shown, rows, make_row(found.shown, FULL, expected), scores, again, area=area)


def _figures(
    entry: CheckedSubmission, budgets: Sequence[float], expected: Languages
) -> tuple[dict[float, Row], MeasuredScores | None]:
    """Rows by budget, and what intervals are made of if every row is whole."""
    have = {cell.budget for cell in entry.submission.cells}
    rows = {budget: make_row(entry, budget, expected) for budget in budgets if budget in have}
    whole = bool(rows) and all(row.complete for row in rows.values()) and entry.status != "reported"
    return rows, measured(entry, budgets) if whole else None


def labelled(lines: Sequence[Line]) -> list[Line]:
    names = Counter(_name(line) for line in lines)
    return [replace(line, label=_name(line) if names[_name(line)] == 1 else _told_apart(line)) for line in lines]


def _name(line: Line) -> str:
    """The method's name; of one that a codec stores its text, `sap | int8`."""
    return line.method.name if line.codec == DEFAULT else _text(line.method)


def _text(method: MethodFacts) -> str:
    """Its text form, without the file that holds it."""
    return method.expression.rpartition(":")[2] if method.file_hash else method.expression


def _told_apart(line: Line) -> str:
    return f"{_name(line)} ({'local run' if line.local else line.entry.submission.id})"


def with_differences(line: Line, place: int, places: Mapping[int, int], found: Resampled | None) -> Line:
    """What other measurements of the line's method differ by; with an interval for a run of one's own."""

    def gap(again: Again, budget: float) -> Interval | None:
        other = places.get(id(again))
        paired = found.difference(other, place, budget) if found and other is not None else None
        ours, theirs = line.rows[budget].retention, again.rows[budget].retention
        if paired or ours is None or theirs is None:
            return paired
        return Interval(theirs - ours, theirs - ours, theirs - ours)

    again = [
        replace(a, differences={b: d for b in a.rows if b in line.rows and (d := gap(a, b)) is not None})
        for a in line.again
    ]
    return replace(line, again=tuple(again))
