"""The canvas a page is drawn on: words, rules, tables, charts, in pixels; it records every word it draws.

Text rows sit on the rows of patches and words start at multiples of 4 px. That is a concession to a retriever of two
million parameters: a prototype learned to read 61 % of its word patches with free positions, and 93 % with these.
"""

from __future__ import annotations

import functools
import math
import random
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageColor, ImageDraw, ImageFont

from .specs import Chart
from .vocabulary import NUMBER

SIDE = 224
ROW = 16
SNAP = 4
INK, GREY, RULE, TINT, PAPER = "#1c1c28", "#6b6f7b", "#b8bcc6", "#e4e8f2", "#ffffff"
COLOUR_HEX = {"red": "#d62f2f", "blue": "#2f62d6", "green": "#2f9e44", "orange": "#f2920c"}
FONTS = Path(__file__).parent / "fonts"


def _blend(ink: str, ground: str, levels: int) -> list[int]:
    """The palette entries from just off `ground` to full `ink`, as anti-aliased edges need them."""
    one, two = (ImageColor.getrgb(colour)[:3] for colour in (ground, ink))
    return [round(a + (b - a) * step / levels) for step in range(1, levels + 1) for a, b in zip(one, two, strict=True)]


@functools.cache
def palette() -> Image.Image:
    """One palette for all pages: files are a third of full colour, and no page's colours depend on its content."""
    entries = [*ImageColor.getrgb(PAPER), *ImageColor.getrgb(TINT), *_blend(INK, PAPER, 14), *_blend(INK, TINT, 8)]
    entries += [*_blend(GREY, PAPER, 6), *_blend(RULE, PAPER, 2)]
    for colour in COLOUR_HEX.values():
        entries += _blend(colour, PAPER, 3)
    image = Image.new("P", (1, 1))
    image.putpalette(entries)
    return image


@dataclass(frozen=True)
class DrawnWord:
    """A word on the page, lower case, and its box in pixels (left, top, right, bottom)."""

    word: str
    box: tuple[int, int, int, int]


@dataclass(frozen=True)
class DrawnChart:
    chart: Chart
    box: tuple[int, int, int, int]


@functools.cache
def font(size: int, bold: bool) -> ImageFont.FreeTypeFont:
    # Basic layout: the result must not depend on whether Pillow was built with Raqm.
    name = "DejaVuSansCondensed-Bold.ttf" if bold else "DejaVuSansCondensed.ttf"
    return ImageFont.truetype(str(FONTS / name), size, layout_engine=ImageFont.Layout.BASIC)


@functools.cache
def width(text: str, size: int, bold: bool) -> int:
    return math.ceil(font(size, bold).getlength(text))


class Canvas:
    """A white page. Rows are counted in patch rows (16 px), x in pixels."""

    def __init__(self) -> None:
        self.image = Image.new("RGB", (SIDE, SIDE), PAPER)
        self.draw = ImageDraw.Draw(self.image)
        self.words: list[DrawnWord] = []
        self.charts: list[DrawnChart] = []

    def text(self, text: str, x: int, row: int, *, size: int = 10, bold: bool = False, fill: str = INK) -> int:
        """Draw one word on a row; returns where the next word may start."""
        x = -(-x // SNAP) * SNAP
        base = row * ROW + 12
        self.draw.text((x, base), text, font=font(size, bold), fill=fill, anchor="ls")
        right = x + width(text, size, bold)
        word = NUMBER if _is_figure(text) else text.lower().strip(".,")
        self.words.append(DrawnWord(word, (x, base - round(0.75 * size), right, base + 2)))
        return right + max(3, size // 3)

    def line(self, words: list[str], x: int, row: int, right: int, **style: object) -> list[str]:
        """Draw as many words as fit before `right`; returns the rest."""
        size, bold = int(style.get("size", 10)), bool(style.get("bold", False))  # type: ignore[call-overload]
        for done, word in enumerate(words):
            if -(-x // SNAP) * SNAP + width(word, size, bold) > right:
                return words[done:]
            x = self.text(word, x, row, **style)  # type: ignore[arg-type]
        return []

    def rule(self, left: int, right: int, y: int, fill: str = RULE) -> None:
        self.draw.line((left, y, right, y), fill=fill)

    def fill(self, box: tuple[int, int, int, int], colour: str) -> None:
        left, top, right, bottom = box
        self.draw.rectangle((left, top, right - 1, bottom - 1), fill=colour)

    def chart(self, chart: Chart, box: tuple[int, int, int, int], rng: random.Random) -> None:
        """A chart of one colour inside `box`: bars, a line with points, or a pie."""
        left, top, right, bottom = box
        colour = COLOUR_HEX[chart.colour]
        self.charts.append(DrawnChart(chart, box))
        if chart.kind == "pie":
            radius = min(right - left, bottom - top) // 2 - 2
            x, y = (left + right) // 2, (top + bottom) // 2
            circle = (x - radius, y - radius, x + radius, y + radius)
            start = rng.randrange(360)
            first, second = rng.randrange(100, 200), rng.randrange(60, 100)
            self.draw.pieslice(circle, start, start + first, fill=colour, outline=PAPER)
            self.draw.pieslice(circle, start + first, start + first + second, fill=RULE, outline=PAPER)
            self.draw.pieslice(circle, start + first + second, start + 360, fill=GREY, outline=PAPER)
            return
        self.draw.line((left + 3, top + 2, left + 3, bottom - 3), fill=GREY)
        self.draw.line((left + 3, bottom - 3, right - 2, bottom - 3), fill=GREY)
        steps = max(3, (right - left) // 14)
        heights = [rng.uniform(0.25, 0.95) * (bottom - top - 8) for _ in range(steps)]
        xs = [left + 8 + i * (right - left - 14) / (steps - 1 if chart.kind == "line" else steps) for i in range(steps)]
        if chart.kind == "bar":
            for at, height in zip(xs, heights, strict=True):
                self.draw.rectangle((round(at), round(bottom - 4 - height), round(at) + 7, bottom - 4), fill=colour)
            return
        points = [(round(at), round(bottom - 4 - height)) for at, height in zip(xs, heights, strict=True)]
        self.draw.line(points, fill=colour, width=2)
        for x, y in points:
            self.draw.ellipse((x - 2, y - 2, x + 2, y + 2), fill=colour)


def _is_figure(text: str) -> bool:
    """Figures in table cells; a four-digit number is a year, which is a fact."""
    digits = text.replace(".", "").replace("%", "")
    return digits.isdigit() and not (len(text) == 4 and text.isdigit())
