"""Five ways to lay a page out: report, table, chart page, slide, article in two columns; and `render`, which picks one.

A layout must show every word of its page at least once and no other fact: `render` checks both, since qrels rest on it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from PIL import Image

from pruners.core.errors import PruneBoardError

from .drawing import GREY, INK, ROW, RULE, SIDE, TINT, Canvas, DrawnChart, DrawnWord, palette, width
from .specs import PageSpec
from .vocabulary import FILLERS, NUMBER

LEFT, RIGHT = 12, SIDE - 8


@dataclass(frozen=True)
class Rendered:
    """A drawn page (palette mode), with what stands where on it."""

    image: Image.Image
    words: tuple[DrawnWord, ...]
    charts: tuple[DrawnChart, ...]


def render(page: PageSpec, rng: random.Random) -> Rendered:
    """Draw the page; positions, repeats and fillers come from `rng`."""
    canvas = Canvas()
    _LAYOUT[page.layout](canvas, page, rng)
    drawn = {word.word for word in canvas.words} - set(FILLERS) - {NUMBER}
    facts = {word.lower() for word in (*page.words, *page.side, page.country, page.year)}
    if drawn != facts or {c.chart for c in canvas.charts} != set(page.charts):
        raise PruneBoardError(f"the {page.layout} layout drew {sorted(drawn)} for a page that says {sorted(facts)}")
    return Rendered(
        canvas.image.quantize(palette=palette(), dither=Image.Dither.NONE), tuple(canvas.words), tuple(canvas.charts)
    )


def prose(required: list[str], repeats: list[str], count: int, rng: random.Random) -> list[str]:
    """`required` words in order, then words out of `repeats`, with fillers between; at least `count` words."""
    words: list[str] = []
    queue = list(required)
    while queue or len(words) < count:
        if rng.random() < 0.45:
            words.append(rng.choice(FILLERS))
        words.append(queue.pop(0) if queue else rng.choice([word for word in repeats if [word] != words[-1:]]))
    return words


def _paragraph(canvas: Canvas, words: list[str], rows: range, left: int, right: int, size: int = 10) -> list[str]:
    for row in rows:
        words = canvas.line(words, left, row, right, size=size)
    return words


def _title(canvas: Canvas, page: PageSpec, row: int, size: int, rng: random.Random) -> None:
    first, second = (word.capitalize() for word in page.title)
    joined = [first, rng.choice(("and", "with", "for")), second]
    while sum(width(word, size, True) + 8 for word in joined) > RIGHT - LEFT:
        size -= 1
    canvas.line(joined, LEFT, row, RIGHT, size=size, bold=True)


def _heading(canvas: Canvas, word: str, row: int, left: int = LEFT) -> None:
    canvas.text(word.capitalize(), left, row, size=11, bold=True)


def _footer(canvas: Canvas, rng: random.Random) -> None:
    canvas.rule(LEFT, RIGHT, 13 * ROW + 1)
    canvas.text(str(rng.randrange(2, 99)), rng.choice((LEFT, 104, 200)), 13, size=9, fill=GREY)


def _place_and_year(canvas: Canvas, page: PageSpec, row: int, rng: random.Random) -> None:
    """Country and year, together under a title or apart like a running head."""
    if rng.random() < 0.5:
        end = canvas.text(page.country, LEFT, row, fill=GREY)
        canvas.text(page.year, end, row, fill=GREY)
    else:
        canvas.text(page.year, LEFT, row, fill=GREY)
        canvas.text(page.country, RIGHT - width(page.country, 10, False) - 4, row, fill=GREY)


def _report(canvas: Canvas, page: PageSpec, rng: random.Random) -> None:
    _place_and_year(canvas, page, 0, rng)
    canvas.rule(LEFT, RIGHT, ROW)
    _title(canvas, page, 1, rng.choice((13, 14)), rng)
    everything = [*page.words, *page.side]
    required = everything[2:]
    rng.shuffle(required)
    _heading(canvas, required.pop(), 3)
    _paragraph(canvas, prose(required[:2], everything, 16, rng), range(4, 6 + rng.randrange(2)), LEFT, RIGHT)
    _heading(canvas, rng.choice(everything), 7)
    left, right = LEFT, RIGHT
    if page.charts:
        if rng.random() < 0.5:
            left = 7 * ROW + 4
            canvas.chart(page.charts[0], (LEFT, 8 * ROW, 6 * ROW + 12, 12 * ROW), rng)
        else:
            right = 7 * ROW
            canvas.chart(page.charts[0], (7 * ROW + 8, 8 * ROW, RIGHT, 12 * ROW), rng)
    last = rng.choice((11, 12))
    _paragraph(canvas, prose(required[2:], everything, 24, rng), range(8, last), left, right)
    _footer(canvas, rng)


def _table(canvas: Canvas, page: PageSpec, rng: random.Random) -> None:
    _title(canvas, page, rng.choice((0, 1)), 13, rng)
    top = 3
    labels = [*page.words, *page.side]
    rng.shuffle(labels)
    columns = [page.year, "total", "share"][: rng.choice((2, 3))]
    rng.shuffle(columns)
    lefts = [100 + 40 * i for i in range(len(columns))]
    canvas.fill((LEFT - 4, top * ROW, RIGHT, top * ROW + ROW), TINT)
    canvas.text(page.country, LEFT, top, bold=True)
    for x, column in zip(lefts, columns, strict=True):
        canvas.text(column, x, top, bold=True)
    for row, label in enumerate(labels, start=top + 1):
        canvas.text(label, LEFT, row)
        for x in lefts:
            canvas.text(_figure(rng), x, row)
        canvas.rule(LEFT - 4, RIGHT, row * ROW)
    bottom = (top + 1 + len(labels)) * ROW
    canvas.rule(LEFT - 4, RIGHT, bottom, GREY)
    if rng.random() < 0.5:
        for x in (LEFT - 4, *(x - 6 for x in lefts), RIGHT):
            canvas.draw.line((x, top * ROW, x, bottom), fill=GREY)
    _paragraph(canvas, prose([], labels, 12, rng), range(11, 12 + rng.randrange(2)), LEFT, RIGHT)
    _footer(canvas, rng)


def _chart(canvas: Canvas, page: PageSpec, rng: random.Random) -> None:
    _title(canvas, page, 0, 13, rng)
    _place_and_year(canvas, page, 1, rng)
    everything = [*page.words, *page.side]
    rest = everything[2:]
    rng.shuffle(rest)
    if len(page.charts) == 2:
        boxes = [(LEFT, 3 * ROW, 6 * ROW + 8, 8 * ROW), (7 * ROW + 4, 3 * ROW, RIGHT, 8 * ROW)]
    else:
        boxes = [(rng.choice((LEFT, 4 * ROW)), 3 * ROW, rng.choice((10, 13)) * ROW, 8 * ROW)]
    for chart, box in zip(page.charts, boxes, strict=True):
        canvas.chart(chart, box, rng)
    for box, label in zip(boxes, rest, strict=False):
        canvas.text(label, box[0] + 8, 8, size=9)
    _paragraph(canvas, prose(rest, everything, 18, rng), range(10, 12 + rng.randrange(2)), LEFT, RIGHT)
    _footer(canvas, rng)


def _slide(canvas: Canvas, page: PageSpec, rng: random.Random) -> None:
    canvas.fill((0, 0, SIDE, 2 * ROW + 2), TINT)
    canvas.fill((0, 2 * ROW + 2, SIDE, 2 * ROW + 4), GREY)
    _title(canvas, page, rng.choice((0, 1)), 14, rng)
    everything = [*page.words, *page.side]
    bullets = everything[2:]
    rng.shuffle(bullets)
    step = rng.choice((1, 2))
    right = RIGHT
    if page.charts:
        right = 7 * ROW
        canvas.chart(page.charts[0], (8 * ROW, rng.choice((3, 5)) * ROW, RIGHT, rng.choice((10, 11)) * ROW), rng)
    for place, bullet in enumerate(bullets):
        row = 4 + place * step
        canvas.fill((LEFT, row * ROW + 5, LEFT + 5, row * ROW + 10), INK)
        words = (
            [bullet, rng.choice([w for w in (*FILLERS, *everything) if w != bullet])]
            if rng.random() < 0.6
            else [bullet]
        )
        canvas.line(words, LEFT + 12, row, right, size=11)
    _place_and_year(canvas, page, 13, rng)


def _article(canvas: Canvas, page: PageSpec, rng: random.Random) -> None:
    _title(canvas, page, 0, 13, rng)
    everything = [*page.words, *page.side]
    required = [*everything[2:], page.country, page.year]
    rng.shuffle(required)
    canvas.rule(LEFT, RIGHT, ROW + 4)
    words = prose(required, everything, 70, rng)
    gutter = SIDE // 2
    end = rng.choice((12, 13))
    start = 2
    if rng.random() < 0.5:
        _heading(canvas, rng.choice(everything), 2)
        start = 3
    words = _paragraph(canvas, words, range(start, end), LEFT, gutter - 2)
    canvas.draw.line((gutter, 2 * ROW, gutter, end * ROW), fill=RULE)
    _paragraph(canvas, words, range(2, end), gutter + 6, RIGHT + 4)
    _footer(canvas, rng)


def _figure(rng: random.Random) -> str:
    return rng.choice(
        (f"{rng.randrange(1, 99)}.{rng.randrange(10)}", f"{rng.randrange(10, 999)}", f"{rng.randrange(1, 99)}%")
    )


_LAYOUT: dict[str, Callable[[Canvas, PageSpec, random.Random], None]] = {
    "report": _report,
    "table": _table,
    "chart": _chart,
    "slide": _slide,
    "article": _article,
}
