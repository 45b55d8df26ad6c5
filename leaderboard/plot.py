"""The trade-off plot as numbers: where every point, whisker and tick lies. The template only draws it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.rows import Row
from leaderboard.views import View
from leaderboard.words import file_name

COLOURS, MARKERS = 7, 9  # no common divisor, so 63 lines differ in one or the other
MOST = 40
"""Lines in a plot; beyond, nobody can tell them apart. The table of the board has all."""
WIDTH, HEIGHT = 880, 460
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 34, 46
X_TICKS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True)
class Point:
    row: Row
    x: int
    y: int
    low: int
    high: int
    on_front: bool


@dataclass(frozen=True)
class Series:
    """A method's line. `strong` ones reach the Pareto front, or the plot has few lines."""

    name: str
    page: str
    colour: int
    marker: int
    points: tuple[Point, ...]
    strong: bool

    @property
    def path(self) -> str:
        return " ".join(f"{p.x},{p.y}" for p in self.points)

    @property
    def whiskers(self) -> str:
        return "".join(f"M{p.x} {p.low}V{p.high}" for p in self.points if p.low != p.high)

    def at(self, budget: float) -> Point | None:
        return next((point for point in self.points if point.row.budget == budget), None)


@dataclass(frozen=True)
class Plot:
    series: tuple[Series, ...]
    x_ticks: tuple[tuple[int, str], ...]
    y_ticks: tuple[tuple[int, str], ...]
    full: int
    front: str
    left_out: int
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def trade_off(view: View) -> Plot | None:
    """Retention against realised budget, one line a method."""
    lines = [line for line in view.lines if any(row.retention is not None for row in line.rows.values())]
    shown = lines[:MOST]
    if not shown:
        return None
    at = {i: [row for _, row in sorted(line.rows.items()) if row.retention is not None] for i, line in enumerate(shown)}
    xs = [kept(row) for rows in at.values() for row in rows]
    ys = [y for rows in at.values() for row in rows for y in (row.retention, *_whisker(row)) if y is not None]
    x = _log_scale(min(xs) * 0.9, max(xs) * 1.1)
    y_low, y_high = 10 * math.floor(min(ys) / 10), max(102.0, max(ys) + 1)
    y = _linear_scale(y_low, y_high)
    front = pareto([(kept(row), row.retention or 0.0) for i, rows in at.items() for row in rows if shown[i].ranked])
    series = []
    for i, line in enumerate(shown):
        points = tuple(_point(row, x, y, (kept(row), row.retention) in front) for row in at[i])
        strong = len(shown) <= COLOURS or any(point.on_front for point in points)
        name = line.method.name
        series.append(Series(name, file_name(name), i % COLOURS, i % MARKERS, points, strong))
    step = 10 if y_high - y_low > 40 else 5
    return Plot(
        tuple(series),
        tuple((x(t), f"{100 * t:g} %") for t in X_TICKS if min(xs) * 0.9 <= t <= max(xs) * 1.1),
        tuple((y(t), str(t)) for t in range(y_low, math.floor(y_high) + 1, step)),
        y(100),
        " ".join(f"{x(a)},{y(b)}" for a, b in front),
        len(lines) - len(shown),
    )


def kept(row: Row) -> float:
    """Realised budget; the nominal one where a paper does not say."""
    return row.budget if row.realised is None else row.realised


def pareto(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other one beats: none keeps as little and retains more. By what they keep."""
    front: list[tuple[float, float]] = []
    for size, quality in sorted(points, key=lambda p: (p[0], -p[1])):
        if not front or quality > front[-1][1]:
            front.append((size, quality))
    return front


def _point(row: Row, x: Scale, y: Scale, on_front: bool) -> Point:
    assert row.retention is not None
    low, high = _whisker(row)
    return Point(row, x(kept(row)), y(row.retention), y(low), y(high), on_front)


def _whisker(row: Row) -> tuple[float, float]:
    assert row.retention is not None
    return (row.interval.low, row.interval.high) if row.interval else (row.retention, row.retention)


class Scale:
    """From a figure to whole pixels."""

    def __init__(self, low: float, high: float, start: float, stop: float, log: bool) -> None:
        self.low, self.span = (math.log(low), math.log(high / low)) if log else (low, high - low)
        self.start, self.stop, self.log = start, stop, log

    def __call__(self, value: float) -> int:
        share = ((math.log(value) if self.log else value) - self.low) / self.span
        return round(self.start + share * (self.stop - self.start))


def _log_scale(low: float, high: float) -> Scale:
    return Scale(low, high, LEFT, WIDTH - RIGHT, log=True)


def _linear_scale(low: float, high: float) -> Scale:
    return Scale(low, high, HEIGHT - BOTTOM, TOP, log=False)
