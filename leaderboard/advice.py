"""A board's rows as advice takes them: what its sliders choose from, and what `harness advise --board` reads."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.advice.advise import Basis
from harness.advice.rule import GB, Asked, Candidate, bound, choose, front, size_of, why_barred
from harness.advice.width import scanned_width
from harness.advice.words import rounded_up
from harness.benchmarks.embedded import NANO_NOTE
from harness.progress import Progress
from leaderboard.gather import gather
from leaderboard.lines import UNSURE, Line
from leaderboard.rows import FULL, Row
from leaderboard.views import View, make_views
from pruners.core.errors import PruneBoardError

WHOLE = "full"
KEEP = 98.0
"""What the sliders ask at first."""
MILLION = 1e6


@dataclass(frozen=True)
class BoardAdvice:
    """What a board's page says and its sliders choose from: all that can be the answer, the smallest first."""

    front: tuple[tuple[Candidate, Line | None], ...]
    """With its line; none for the unpruned index."""
    first: Candidate | None
    """What is advised for `keep` without a limit."""
    keep: float = KEEP
    pages: float = MILLION

    @property
    def least(self) -> int:
        """Where the slider of what is kept begins: at the lowest bound, but where somebody may ask."""
        return min(90, max(50, math.floor(bound(self.front[0][0]))))

    def size(self, one: Candidate) -> float:
        """Bytes of its index of so many pages."""
        return size_of(one, self.pages)

    @property
    def sizes(self) -> tuple[float, float]:
        """GB of the smallest and of the largest index; what is shown is enough for it."""
        ends = (self.front[0][0], self.front[-1][0])
        low, high = (rounded_up(self.size(one) / GB) for one in ends)
        return low, high


def board_advice(view: View) -> BoardAdvice | None:
    """None where no row may be advised: a paper's figures alone."""
    rows, lines = list(view_candidates(view)), {line.label: line for line in view.lines}
    found = front(rows, MILLION)
    if not found:
        return None
    first = choose(found, Asked(KEEP, MILLION))
    return BoardAdvice(tuple((one, lines.get(one.text)) for one in found), first)


def view_candidates(view: View) -> Iterator[Candidate]:
    """Every line at every budget; the unpruned index keeps 100 by definition."""
    sized = [line for line in view.lines if line.full.bytes and line.entry.status not in UNSURE]
    if sized:
        whole, status, dim = sized[0].full, sized[0].entry.status, sized[0].entry.submission.backbone.dim
        kept = 100.0, 100.0, 100.0
        yield Candidate(WHOLE, FULL, whole.own_bytes, *kept, status, vectors_per_page=whole.vectors, width=dim)
    for line in view.lines:
        for _, row in sorted(line.rows.items()):
            yield _candidate(line, row)


def _candidate(line: Line, row: Row) -> Candidate:
    status, interval = line.entry.status, row.interval
    coverage = None if row.complete else row.coverage
    return Candidate(
        text=line.label,
        budget=row.budget,
        own_bytes=row.own_bytes,
        shared_bytes=row.shared_bytes,
        retention=row.retention,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        status=status,
        codec=line.stored,
        vectors_per_page=row.vectors,
        width=scanned_width(line.stored, line.entry.submission.backbone.dim),
        prune_ms=row.milliseconds,
        needs=line.method.signals,
        barred=why_barred(status, line.method.track.value, coverage, interval is not None, row.bytes is not None),
    )


def view_basis(view: View) -> Basis:
    facts = [line.entry.submission for line in view.lines]
    sets = {data_set.name: data_set for one in facts for data_set in one.benchmark.data_sets}
    shown = [sets[name] for name in view.data_sets if name in sets]
    pages, queries = [one.pages for one in shown], [one.queries for one in shown]
    dims = [one.backbone.dim for one in facts if one.backbone.dim]
    return Basis(
        source=f"the board {view.slug}",
        benchmark=view.benchmark,
        backbone=view.backbone,
        kind=view.kind,
        data_sets=len(view.data_sets),
        pages=None if None in pages else sum(one for one in pages if one),
        queries=None if None in queries else sum(one for one in queries if one),
        dim=dims[0] if dims else None,
        remarks=(NANO_NOTE,) if view.nano else (),
    )


def find_view(board: str, submissions: Path, progress: Progress) -> View:
    """The view of `benchmark/backbone`, from the submissions of a folder, checked as the site checks them."""
    benchmark, _, backbone = board.partition("/")
    found = gather(submissions, [])
    here = [name for name in found.shelves() if name[1:] == (backbone, benchmark)]
    if not here:
        there = ", ".join(f"{name}/{of}" for _, of, name in found.shelves())
        raise PruneBoardError(
            f"there is no board {board!r}; --board takes one of {there or 'none: there are no boards'}"
        )
    places = {(benchmark, backbone)}
    batches = [b for b in found.batches() if places & {(p.parents[2].name, p.parents[1].name) for p in b.files}]
    views: list[View] = []
    with progress("reading the board", total=len(batches), done=0) as advance:
        for batch in batches:
            views += make_views(batch.load()[0], found.benchmarks)
            advance(1)
    able = [view for view in views if (view.benchmark, view.backbone) == (benchmark, backbone)]
    if not able:
        raise PruneBoardError(f"no submission of {board} is valid; `harness validate {submissions}` says why")
    return able[0]
