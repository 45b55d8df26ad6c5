"""Drawing a plot: its two sizes, scales and ticks, and labels placed where they cover nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

Scale = Callable[[float], int]


@dataclass(frozen=True)
class Size:
    name: str
    width: int
    height: int
    letter: float
    """Width of a letter of a label."""
    left: int = 46
    right: int = 14
    top: int = 30
    bottom: int = 46


WIDE, NARROW = Size("wide", 880, 440, 6.9), Size("narrow", 420, 400, 7.6)


@dataclass(frozen=True)
class Label:
    x: int
    y: int
    text: str
    colour: int
    end: bool
    """Whether the text ends at x."""


def place(
    labels: Sequence[tuple[str, int, Sequence[tuple[int, int]]]],
    taken: Sequence[tuple[float, float, float, float]],
    size: Size,
) -> Iterator[Label]:
    """A label beside one of a method's points, where it covers no other label and no mark; none if there is no room."""
    boxes = list(taken)
    for text, colour, points in labels:
        shown = text if len(text) <= 24 else text[:23] + "…"
        width = size.letter * len(shown)
        for x, y, end, box in _choices(points, width):
            inside = box[0] >= 0 and box[2] <= size.width and box[1] >= size.top - 14 and box[3] <= size.height - 22
            if inside and not any(_meet(box, other) for other in boxes):
                boxes.append(box)
                yield Label(x, y, shown, colour, end)
                break


def _choices(
    points: Sequence[tuple[int, int]], width: float
) -> Iterator[tuple[int, int, bool, tuple[float, float, float, float]]]:
    for up, aside in ((-9, 2), (4, 10), (17, 4), (-22, 2), (30, 4), (-35, 2), (43, 4)):
        for px, py in points:
            for end in (True, False):
                x, y = px + (-aside if end else aside), py + up
                left = x - width if end else x
                yield x, y, end, (left, y - 11, left + width, y + 3)


def _meet(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def log_scale(low: float, high: float, start: float, stop: float) -> Scale:
    return lambda v: round(start + math.log(v / low) / math.log(high / low) * (stop - start))


def linear_scale(low: float, high: float, start: float, stop: float) -> Scale:
    return lambda v: round(start + (v - low) / (high - low) * (stop - start))


def log_ticks(low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [tick for d in decades for m in (1, 2, 5) if low <= (tick := m * 10.0**d) <= high]


def apart(ticks: Sequence[tuple[int, str]], size: Size) -> Iterator[tuple[int, str]]:
    """Ticks whose names do not touch."""
    last = -math.inf
    for at, name in ticks:
        half = size.letter * len(name) / 2
        if at - half > last + 6 and at + half <= size.width:
            last = at + half
            yield at, name


def round_range(low: float, high: float, key: str) -> tuple[float, float, float]:
    """A little more than the figures, in round steps; retention always shows the full model."""
    if key == "retention":
        high = max(high, 101.0)
    step = next(s for s in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if (high - low) / s <= 8 or s == 50)
    return step * math.floor(low / step), high + step / 4, step


def steps(low: float, high: float, step: float) -> list[float]:
    return [round(low + i * step, 6) for i in range(int((high - low) / step + 1e-9) + 1)]
