"""Two methods side by side: the difference of their retentions on every data set, with its interval.

All pairs of a view are resampled at build and packed, because a page without a server cannot ask for one pair, and
because the bootstrap exists once, in Python. The bounds of an interval are packed as their distances from the
difference, in the finest of a few steps that fits all of them. An interval is hardly longer on one side than on the
other, so what is packed is the distance below and how much longer it is above, in as many bits as the longest takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.metrics.uncertainty import RESAMPLES, Interval
from leaderboard.bootstrap import Resampled, resample
from leaderboard.heat import short_name
from leaderboard.views import Line, View
from leaderboard.words import budget_name

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
STEPS = (0.02, 0.05, 0.1, 0.2)
"""Points; half of it is what a bound may be off."""
FARTHEST = 511
"""Steps from a difference to a bound."""
MOST = 200
"""Methods to choose from, the best by headline."""
PAIRED = 30
"""Of these, measured methods whose pairs have intervals: pairs grow with the square."""


@dataclass(frozen=True)
class Difference:
    """Of a method to the reference, on one data set or all; `interval` is None where nothing was measured per query."""

    value: float | None
    interval: Interval | None

    @property
    def clear(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.interval is not None and not self.interval.low <= 0 <= self.interval.high


@dataclass(frozen=True)
class Pairs:
    """The methods of a view that can be compared, and their resamples: over all data sets, then each alone."""

    view: View
    lines: tuple[Line, ...]
    resampled: tuple[Resampled | None, ...]

    @property
    def names(self) -> list[str]:
        return ["all data sets", *(short_name(name) for name in self.view.data_sets)]

    def values(self, line: Line, budget: float) -> list[float | None]:
        row = line.rows.get(budget)
        if row is None:
            return [None] * len(self.names)
        return [row.retention, *(row.retention_on(name) for name in self.view.data_sets)]

    def differences(self, a: int, b: int, budget: float) -> list[Difference]:
        """Of line a to line b."""
        pairs = zip(self.values(self.lines[a], budget), self.values(self.lines[b], budget), strict=True)
        return [
            Difference(None if x is None or y is None else x - y, found.difference(a, b, budget) if found else None)
            for (x, y), found in zip(pairs, self.resampled, strict=True)
        ]


def make_pairs(view: View) -> Pairs:
    shown = [line for line in view.lines if any(row.data_sets for row in line.rows.values())]
    lines = tuple(sorted(shown, key=lambda line: line.measured is None)[:MOST])  # measured ones first
    measured = [line.measured for line in lines[:PAIRED]]
    sets = [tuple(view.data_sets), *((name,) for name in view.data_sets)]
    return Pairs(view, lines, tuple(resample(measured, names, view.resamples or RESAMPLES) for names in sets))


def packed(pairs: Pairs) -> dict[str, Any]:
    """What the page's script reads: retentions in hundredths, and the bounds of all pairs a < b."""
    budgets = pairs.view.budgets
    found = {budget: _intervals(pairs, budget) for budget in budgets} if any(pairs.resampled) else {}
    step = _step([interval for intervals in found.values() for interval in intervals if interval])
    far = {budget: [_distances(interval, step) for interval in intervals] for budget, intervals in found.items()}
    longer = [above - below for distances in far.values() for below, above in filter(None, distances)] or [0]
    least, span = min(longer), max(longer) - min(longer) + 1
    codes = [[_code(distances, least, span) for distances in here] for here in far.values()]
    width = max((code for here in codes for code in here), default=0).bit_length()
    return {
        "methods": _distinct([line.method.name for line in pairs.lines], pairs.lines),
        "budgets": [budget_name(budget) for budget in budgets],
        "sets": pairs.names,
        "values": [
            [[None if v is None else round(100 * v) for v in pairs.values(line, budget)] for line in pairs.lines]
            for budget in budgets
        ],
        "step": step,
        "paired": min(len(pairs.lines), PAIRED),
        "least": least,
        "span": span,
        "width": width,
        "bounds": [_letters(here, width) for here in codes] or None,
    }


def _intervals(pairs: Pairs, budget: float) -> list[Interval | None]:
    """Of all pairs a < b, over all data sets and on each."""
    size = min(len(pairs.lines), PAIRED)
    return [
        found.difference(a, b, budget) if found else None
        for a in range(size)
        for b in range(a + 1, size)
        for found in pairs.resampled
    ]


def _step(intervals: list[Interval]) -> float:
    widest = max((max(i.value - i.low, i.high - i.value) for i in intervals), default=0.0)
    return next((step for step in STEPS if widest / step < FARTHEST), STEPS[-1])


def _distances(interval: Interval | None, step: float) -> tuple[int, int] | None:
    if interval is None:
        return None
    below, above = round((interval.value - interval.low) / step), round((interval.high - interval.value) / step)
    return min(below, FARTHEST), min(above, FARTHEST)


def _code(distances: tuple[int, int] | None, least: int, span: int) -> int:
    """0 is no interval."""
    return 0 if distances is None else 1 + distances[0] * span + distances[1] - distances[0] - least


def _letters(codes: list[int], width: int) -> str:
    """Codes of so many bits one after the other, six bits a letter."""
    bits = "".join(f"{code:0{width}b}" for code in codes)
    return "".join(ALPHABET[int(bits[i : i + 6].ljust(6, "0"), 2)] for i in range(0, len(bits), 6))


def _distinct(names: list[str], lines: tuple[Line, ...]) -> list[str]:
    """Method names; with the submission's id where one was submitted more than once."""
    return [
        name if names.count(name) == 1 else f"{name} ({line.entry.submission.id})"
        for name, line in zip(names, lines, strict=True)
    ]
