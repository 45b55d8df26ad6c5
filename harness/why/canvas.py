"""A page as it is drawn, and where each of its vectors lies on it.

A patch grid covers the whole page. ColSmol cuts a page into tiles, row by row, and reads a thumbnail of the whole after
them: the thumbnail is drawn below the page. For text encoders the page's text is set in lines, a box a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from harness.minidocs.drawing import font
from harness.why.tokens import Span
from pruners.core.errors import PruneBoardError

TEXT_WIDTH, TEXT_SIZE, LEADING, MARGIN = 720, 15, 23, 16
GAP = 8
"""Pixels between a page and its thumbnail."""


@dataclass(frozen=True)
class PageCanvas:
    """`boxes [N, 4]` are left, top, right and bottom of each vector's patch or token, in pixels of the image."""

    image: Image.Image
    boxes: np.ndarray
    text: bool = False

    @property
    def size(self) -> tuple[int, int]:
        return self.image.size


def on_grid(image: Image.Image, grid: tuple[int, int], longest: int) -> PageCanvas:
    """A page whose vectors are the cells of a grid (rows, columns), row by row."""
    picture = _at_most(image, longest)
    return PageCanvas(picture, _cells(grid, (0, 0, *picture.size)))


def in_tiles(image: Image.Image, tiles: tuple[int, int], side: int, longest: int) -> PageCanvas:
    """A page cut into rows x columns of tiles with side x side vectors each, and its thumbnail."""
    page = _at_most(image, longest * 2 // 3)
    width, height = page.size
    small = page.resize((max(1, width // 2), max(1, height // 2)), Image.Resampling.LANCZOS)
    whole = Image.new("RGB", (width, height + GAP + small.height), "#888888")
    whole.paste(page, (0, 0))
    whole.paste(small, (0, height + GAP))
    places = _cells(tiles, (0, 0, width, height)).tolist()
    thumbnail = (0, height + GAP, small.width, whole.height)
    return PageCanvas(whole, np.concatenate([_cells((side, side), place) for place in (*places, thumbnail)]))


def in_lines(text: str, spans: Sequence[Span]) -> PageCanvas:
    """A text set in lines, with the box of each token."""
    face = font(TEXT_SIZE, bold=False)
    boxes, written = [], []
    x, y, at = float(MARGIN), MARGIN, 0
    for start, stop in spans:
        between, word = text[at:start], text[start:stop]
        if breaks := between.count("\n"):
            x, y = float(MARGIN), y + min(breaks, 2) * LEADING
        elif between:
            x += face.getlength(" ")
        width = face.getlength(word)
        if x + width > TEXT_WIDTH - MARGIN and x > MARGIN:
            x, y = float(MARGIN), y + LEADING
        boxes.append((x - 0.5, y, x + width + 0.5, y + LEADING - 3))
        written.append((x, y, word))
        x, at = x + width, stop
    image = Image.new("RGB", (TEXT_WIDTH, y + LEADING + MARGIN), "white")
    draw = ImageDraw.Draw(image)
    for left, top, word in written:
        draw.text((left, top + 1), word, font=face, fill="#1c1c28")
    return PageCanvas(image, np.array(boxes, float).reshape(-1, 4), text=True)


def canvas_of(
    page: Any, image: Image.Image | None, tiles: tuple[tuple[int, int], int] | None, longest: int
) -> PageCanvas:
    """The canvas of a page of pictures, if its vectors have a place on it."""
    if image is None:
        raise PruneBoardError(f"page {page.id!r} has no image to draw on")
    if page.grid is not None:
        return on_grid(image, page.grid, longest)
    if tiles is not None:
        canvas = in_tiles(image, *tiles, longest)
        if len(canvas.boxes) == len(page):
            return canvas
        raise PruneBoardError(
            f"page {page.id!r} has {len(page)} vectors, and its tiles have room for {len(canvas.boxes)}: it is not the "
            "image that was encoded"
        )
    raise PruneBoardError(
        f"page {page.id!r} has no patch grid, so nobody knows where on it its {len(page)} vectors lie"
    )


def _cells(grid: tuple[int, int], place: tuple[float, float, float, float]) -> np.ndarray:
    """The cells of a grid over a place, row by row."""
    left, top, right, bottom = place
    ys, xs = (np.linspace(a, b, n + 1) for a, b, n in ((top, bottom, grid[0]), (left, right, grid[1])))
    row, col = (index.ravel() for index in np.indices(grid))
    return np.stack([xs[col], ys[row], xs[col + 1], ys[row + 1]], axis=1)


def _at_most(image: Image.Image, longest: int) -> Image.Image:
    scale = longest / max(image.size)
    if scale >= 1:
        return image
    width, height = (max(1, round(side * scale)) for side in image.size)
    return image.resize((width, height), Image.Resampling.LANCZOS)
