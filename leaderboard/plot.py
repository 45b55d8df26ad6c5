"""The trade-off plot as numbers: where every point, whisker, tick and label lies. The template only draws it.

Every pair of axes is a drawing of its own, made here: the one of a page's first look stands in the page, the others are
fetched when they are chosen. So scales, fronts and labels are computed in one place, and a page without scripts still
has its plot. Each is drawn twice, for wide windows and for phones, because text does not shrink with a drawing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from leaderboard.drawing import (
    NARROW,
    WIDE,
    Label,
    Scale,
    Size,
    apart,
    linear_scale,
    log_scale,
    log_ticks,
    place,
    round_range,
    steps,
)
from leaderboard.lines import Line
from leaderboard.rows import Row
from leaderboard.views import View
from leaderboard.words import amount, fixed

COLOURS = 7
MOST = 100
"""Lines in a plot; the table of the board has all."""


@dataclass(frozen=True)
class Axis:
    key: str
    label: str
    value: Callable[[Row], float | None]
    show: Callable[[float], str]


def kept(row: Row) -> float:
    """Realised budget; the nominal one where a paper does not say."""
    return row.budget if row.realised is None else row.realised


X_AXES = (
    Axis("bytes", "bytes a page", lambda row: row.bytes, lambda v: amount(v)),
    Axis("vectors", "vectors a page", lambda row: row.vectors, lambda v: f"{v:,.4g}"),
    Axis("kept", "share of the vectors kept", kept, lambda v: f"{100 * v:.3g} %"),
    Axis("ms", "milliseconds to prune a page", lambda row: row.milliseconds, lambda v: f"{v:.3g} ms"),
)
Y_AXES = (
    Axis("retention", "NDCG@5, % of the full model", lambda row: row.retention, lambda v: fixed(v)),
    Axis("ndcg5", "NDCG@5", lambda row: row.ndcg.get("5"), lambda v: fixed(v, 4)),
    Axis("sr", "Score Retention", lambda row: row.score_retention, lambda v: fixed(v, 3)),
)


@dataclass(frozen=True)
class Point:
    budget: float
    x: int
    y: int
    whisker: tuple[int, int] | None
    values: str
    """Budget, x, y and the bounds of y, for downloads."""
    words: str


@dataclass(frozen=True)
class Series:
    """A method's line. Those on the Pareto front have a colour and a label; the rest is grey."""

    name: str
    colour: int | None
    points: tuple[Point, ...]

    @property
    def path(self) -> str:
        return " ".join(f"{p.x},{p.y}" for p in self.points)

    @property
    def whiskers(self) -> str:
        return "".join(f"M{p.x} {p.whisker[0]}V{p.whisker[1]}" for p in self.points if p.whisker)


@dataclass(frozen=True)
class Plot:
    x: Axis
    y: Axis
    size: Size
    series: tuple[Series, ...]
    """Back to front: grey ones first."""
    x_ticks: tuple[tuple[int, str], ...]
    y_ticks: tuple[tuple[int, str], ...]
    full: int | None
    front: str
    labels: tuple[Label, ...]


def axes(view: View) -> tuple[list[Axis], list[Axis]]:
    """The axes that a view has figures for; the first of each is what is shown unless another is chosen."""
    rows = [row for line in view.lines for row in line.rows.values() if row.complete]
    found = [[a for a in choice if any(a.value(row) is not None for row in rows)] for choice in (X_AXES, Y_AXES)]
    return found[0], found[1]


def plots(view: View) -> Iterator[tuple[str, tuple[Plot, Plot]]]:
    """Every pair of axes by name, wide and narrow; the default one comes first."""
    xs, ys = axes(view)
    for x in xs:
        for y in ys:
            if found := _points(view, x, y):
                yield f"{x.key}.{y.key}", (_plot(found, x, y, WIDE), _plot(found, x, y, NARROW))


Found = list[tuple[Line, list[tuple[Row, float, float]]]]


def _points(view: View, x: Axis, y: Axis) -> Found:
    """Lines with at least one point, best first: row, x, y. Of more than can be drawn, those on the front first."""
    found = []
    for line in view.lines:
        pairs = [(row, x.value(row), y.value(row)) for _, row in sorted(line.rows.items()) if row.complete]
        points = [(row, a, b) for row, a, b in pairs if a is not None and b is not None and a > 0]
        if points:
            found.append((line, points))
    if len(found) <= MOST:
        return found
    front = set(_front(found))
    reach = [line.competes and any((a, b) in front for _, a, b in points) for line, points in found]
    chosen = sorted(range(len(found)), key=lambda i: not reach[i])[:MOST]
    return [found[i] for i in sorted(chosen)]


def _front(found: Found) -> list[tuple[float, float]]:
    return pareto([(a, b) for line, points in found if line.competes for _, a, b in points])


def _plot(found: Found, x: Axis, y: Axis, size: Size) -> Plot:
    xs = [a for _, points in found for _, a, _ in points]
    ys = [b for _, points in found for row, _, b in points for b in _bounds(row, y, b)]
    across = log_scale(min(xs) * 0.88, max(xs) * 1.14, size.left, size.width - size.right)
    low, high, step = round_range(min(ys), max(ys), y.key)
    up = linear_scale(low, high, size.height - size.bottom, size.top)
    front = _front(found)
    on_front = set(front)
    series, labels, colours = [], [], 0
    for line, points in found:
        reached = [(a, b) for _, a, b in points if line.competes and (a, b) in on_front]
        colour = colours % COLOURS if reached else None
        colours += bool(reached)
        drawn = tuple(_point(line, row, a, b, x, y, across, up) for row, a, b in points)
        series.append(Series(line.label, colour, drawn))
        if colour is not None:
            labels.append((line.label, colour, [(across(a), up(b)) for a, b in reached]))
    taken = [(across(a) - 5, up(b) - 5, across(a) + 5, up(b) + 5) for a, b in front]
    return Plot(
        x, y, size,
        tuple(sorted(series, key=lambda s: s.colour is not None)),
        tuple(apart([(across(t), x.show(t)) for t in log_ticks(min(xs) * 0.88, max(xs) * 1.14)], size)),
        tuple((up(t), f"{t:g}") for t in steps(low, high, step)),
        up(100) if y.key == "retention" and low <= 100 <= high else None,
        _stairs([(across(a), up(b)) for a, b in front]),
        tuple(place(labels, taken, size)),
    )  # fmt: skip


def pareto(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other one beats: none keeps as little and retains more. By what they keep."""
    front: list[tuple[float, float]] = []
    for size, quality in sorted(points, key=lambda p: (p[0], -p[1])):
        if not front or quality > front[-1][1]:
            front.append((size, quality))
    return front


def _stairs(front: Sequence[tuple[int, int]]) -> str:
    """The front as it is: what is reached at one size is what can be had until the next."""
    corners = [f"{x},{y}" for (x, _), (_, y) in zip(front[1:], front[:-1], strict=True)]
    points = [f"{x},{y}" for x, y in front]
    return " ".join([*(p for pair in zip(points[:-1], corners, strict=True) for p in pair), *points[-1:]])


def _bounds(row: Row, y: Axis, value: float) -> tuple[float, ...]:
    return (row.interval.low, row.interval.high, value) if y.key == "retention" and row.interval else (value,)


def _point(line: Line, row: Row, a: float, b: float, x: Axis, y: Axis, across: Scale, up: Scale) -> Point:
    bounds = _bounds(row, y, b)[:2]
    between = f" [{y.show(bounds[0])}, {y.show(bounds[1])}]" if len(bounds) == 2 else ""
    values = ",".join(f"{v:.6g}" for v in (row.budget, a, b, *(bounds if between else ())))
    words = f"{line.label} at {100 * row.budget:.3g} %: {y.show(b)}{between}, {x.show(a)}"
    whisker = (up(bounds[0]), up(bounds[1])) if between else None
    return Point(row.budget, across(a), up(b), whisker, values, words)
