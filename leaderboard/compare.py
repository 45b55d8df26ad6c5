"""Two methods side by side: the difference of their retentions on every data set, with its interval.

All pairs of a view are resampled at build, because a page without a server cannot ask for one pair, and because the
bootstrap exists once, in Python. The page holds the figures themselves; the intervals of a method's pairs are a small
file of their own, which the page's script loads when the method is chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from harness.metrics.uncertainty import RESAMPLES, Interval
from leaderboard.bootstrap import Resampled, resample
from leaderboard.heat import short_name
from leaderboard.lines import Line
from leaderboard.views import Gaps, View
from leaderboard.words import budget_name
from pruners.core.codec_catalog import DEFAULT

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

    @property
    def paired(self) -> int:
        """How many of the lines have intervals."""
        return min(len(self.lines), PAIRED) if any(self.resampled) else 0

    def values(self, line: Line, budget: float) -> list[float | None]:
        row = line.rows.get(budget)
        if row is None:
            return [None] * len(self.names)
        return [row.retention, *(row.retention_on(name) for name in self.view.data_sets)]

    def differences(self, a: int, b: int, budget: float) -> list[Difference]:
        """Of line a to line b."""
        pairs = zip(self.values(self.lines[a], budget), self.values(self.lines[b], budget), strict=True)
        between = self._between.get((min(a, b), max(a, b), budget), [None] * len(self.names))
        return [
            Difference(None if x is None or y is None else x - y, found if a < b or found is None else _turned(found))
            for (x, y), found in zip(pairs, between, strict=True)
        ]

    @cached_property
    def _between(self) -> dict[tuple[int, int, float], list[Interval | None]]:
        """Of all pairs a < b: over all data sets, and on each. Each is computed once."""
        return {
            (a, b, budget): [found.difference(a, b, budget) if found else None for found in self.resampled]
            for a in range(self.paired)
            for b in range(a + 1, self.paired)
            for budget in self.view.budgets
        }

    def gaps(self) -> Gaps | None:
        """The differences over all data sets, for pages that are written when all views are known."""
        if not self.paired:
            return None
        values = np.full((len(self.view.budgets), self.paired, self.paired, 3), np.nan)
        for (a, b, budget), (overall, *_) in self._between.items():
            if overall is not None:
                at, turned = self.view.budgets.index(budget), _turned(overall)
                values[at, a, b] = overall.value, overall.low, overall.high
                values[at, b, a] = turned.value, turned.low, turned.high
        return Gaps(tuple(line.label for line in self.lines[: self.paired]), values)


def make_pairs(view: View) -> Pairs:
    shown = [line for line in view.lines if any(row.data_sets for row in line.rows.values())]
    # measured ones first, and of these such as compete: they are what others are compared with
    lines = tuple(
        sorted(shown, key=lambda line: (line.measured is None, not line.competes, line.codec != DEFAULT))[:MOST]
    )
    measured = [line.measured for line in lines[:PAIRED]]
    sets = [tuple(view.data_sets), *((name,) for name in view.data_sets)]
    return Pairs(view, lines, tuple(resample(measured, names, view.resamples or RESAMPLES) for names in sets))


def page_data(pairs: Pairs) -> dict[str, Any]:
    """What the page itself holds for its script: names, and retentions by budget, method and data set."""
    return {
        "methods": [line.label for line in pairs.lines],
        "budgets": [budget_name(budget) for budget in pairs.view.budgets],
        "sets": pairs.names,
        "values": [[[_rounded(v) for v in pairs.values(line, b)] for line in pairs.lines] for b in pairs.view.budgets],
        "paired": pairs.paired,
        "files": pairs.view.slug,
    }


def bounds_of(pairs: Pairs, a: int) -> list[list[list[list[float] | None]]]:
    """Intervals of method a minus every later one b: `[b - a - 1][budget][data set]` is low and high, or None."""
    between = pairs._between
    return [
        [
            [None if found is None else [round(found.low, 2), round(found.high, 2)] for found in between[a, b, budget]]
            for budget in pairs.view.budgets
        ]
        for b in range(a + 1, pairs.paired)
    ]


def bounds_files(pairs: Pairs) -> Iterator[tuple[int, list]]:
    """What is loaded when a method is chosen, by its place."""
    return ((a, bounds_of(pairs, a)) for a in range(pairs.paired - 1))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _turned(interval: Interval) -> Interval:
    return Interval(-interval.value, -interval.high, -interval.low)
