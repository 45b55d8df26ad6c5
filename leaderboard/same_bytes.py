"""The same bytes: at shares of the full model's, the best combination of method, budget and codec, and who is tied.

At one γ an int8 index is half as large as a float16 one, and a binary one a sixteenth. So ranks are among rows of one
codec, and what is best for its size is told here: each line with the best of its rows that fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.evaluation.same_bytes import BEST, PRUNING, SHARES, STORING, fits
from leaderboard.bootstrap import Resampled
from leaderboard.lines import Line
from leaderboard.rows import Row
from pruners.core.codec_catalog import DEFAULT


@dataclass(frozen=True)
class Fit:
    """A line at the budget at which it is best within the size. Named, not held: lines change when ranks are known."""

    label: str
    budget: float


@dataclass(frozen=True)
class SameBytes:
    """Within a share of the full model's bytes: by way the best, if there is any, and all tied with the first."""

    share: float
    bytes: float
    best: Mapping[str, Fit]
    tied: tuple[Fit, ...]


def same_bytes(lines: Sequence[Line], found: Resampled | None) -> tuple[SameBytes, ...]:
    """Of measured lines that compete; nothing where no size is known, as of a paper's figures."""
    sizes = [line.full.bytes for line in lines if line.full.bytes]
    if found is None or not sizes:
        return ()
    return tuple(_within(share, share * max(sizes), lines, found) for share in SHARES)


def _within(share: float, room: float, lines: Sequence[Line], found: Resampled) -> SameBytes:
    rows = sorted(_fitting(lines, room), key=lambda pair: (-(pair[1].retention or 0.0), pair[1].bytes or 0.0, pair[0]))
    best: dict[str, Fit] = {}
    for place, row in rows:
        for way in _ways(lines[place]):
            best.setdefault(way, Fit(lines[place].label, row.budget))
    first = rows[0] if rows else None
    tied = [
        Fit(lines[place].label, row.budget)
        for place, row in rows[1:]
        if first and _tied(found, (first[0], first[1].budget), (place, row.budget))
    ]
    return SameBytes(share, room, best, tuple(tied))


def _fitting(lines: Sequence[Line], room: float) -> Iterator[tuple[int, Row]]:
    """The best row of each line that fits, with the line's place."""
    for place, line in enumerate(lines):
        rows = [
            row
            for row in line.rows.values()
            if row.retention is not None and row.bytes is not None and fits(row.bytes, room)
        ]
        if line.compared and rows:
            yield place, max(rows, key=lambda row: (row.retention or 0.0, -(row.bytes or 0.0)))


def _ways(line: Line) -> Iterator[str]:
    """How its index was made small: the ways of a run's comparison, told from a submission."""
    yield BEST
    if line.unpruned:
        yield STORING
    elif line.stored == DEFAULT:
        yield PRUNING


def _tied(found: Resampled, a: tuple[int, float], b: tuple[int, float]) -> bool:
    return a in found.places and b in found.places and found.comparison.tied(found.places[a], found.places[b])
