"""A cell of a page view as plain shapes, which the figure (matplotlib) and the page (SVG) draw alike."""

from __future__ import annotations

import colorsys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from harness.why.canvas import PageCanvas
from harness.why.hits import NOWHERE, Hits
from harness.why.kept_vectors import MERGED, KeptVectors
from harness.why.page_view import DrawnCell

DIM, DIM_OPACITY = "#1b2230", 0.66
MERGED_OPACITY = 0.42
GOLDEN = 0.618034
"""Steps of the colour wheel after which neighbours differ most."""
MOST_SIZES = 30
"""Merged vectors whose size is written on them; beyond, numbers would cover the page."""

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Area:
    """Boxes of one colour."""

    boxes: tuple[Box, ...]
    colour: str
    opacity: float
    told: str = ""


@dataclass(frozen=True)
class Number:
    """The size of a merged vector, written on one of its patches."""

    x: float
    y: float
    text: str


@dataclass(frozen=True)
class Move:
    """A token's hit before and after; None where it lies on no patch. `lost` is the similarity."""

    token: int
    before: tuple[float, float] | None
    after: tuple[float, float] | None
    lost: float

    @property
    def stays(self) -> bool:
        return self.before == self.after


def areas(canvas: PageCanvas, kept: KeptVectors) -> list[Area]:
    """What lies over the page: dropped patches dimmed, merged ones in the colour of their vector."""
    gone = np.flatnonzero(kept.labels < 0)
    found = [Area(tuple(_runs(canvas.boxes[gone])), DIM, DIM_OPACITY)] if len(gone) else []
    if kept.kind != MERGED:
        return found
    for vector, size in enumerate(kept.sizes):
        if size > 1:
            boxes = tuple(_runs(canvas.boxes[kept.patches(vector)]))
            found.append(Area(boxes, group_colour(vector), MERGED_OPACITY, f"one vector of {size} patches"))
    return found


def numbers(canvas: PageCanvas, kept: KeptVectors) -> list[Number]:
    """Sizes of the largest merged vectors."""
    if kept.kind != MERGED:
        return []
    sizes = kept.sizes
    largest = [int(v) for v in np.argsort(-sizes, kind="stable")[:MOST_SIZES] if sizes[v] > 1]
    found = []
    for vector in largest:
        centres = _centres(canvas.boxes[kept.patches(vector)])
        x, y = centres[((centres - centres.mean(0)) ** 2).sum(1).argmin()]
        found.append(Number(float(x), float(y), str(int(sizes[vector]))))
    return found


def moves(canvas: PageCanvas, cell: DrawnCell) -> list[Move]:
    """The hits of a cell's query, token by token."""
    return [] if cell.hits is None else list(_moves(canvas, cell.hits))


def _moves(canvas: PageCanvas, hits: Hits) -> Iterator[Move]:
    centres = _centres(canvas.boxes)

    def place(patch: int) -> tuple[float, float] | None:
        return None if patch == NOWHERE else (float(centres[patch, 0]), float(centres[patch, 1]))

    for token, (before, after, lost) in enumerate(zip(hits.before, hits.after, hits.lost, strict=True)):
        yield Move(token, place(int(before)), place(int(after)), float(lost))


def group_colour(vector: int) -> str:
    red, green, blue = colorsys.hls_to_rgb(vector * GOLDEN % 1, 0.5, 0.75)
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"


def lost_colour(share: float) -> tuple[str, float]:
    """A token's shade, and how strong it is: orange where similarity was lost, blue where it was won."""
    return ("#d55e00" if share > 0 else "#0072b2"), min(1.0, abs(share))


def signed(value: float, digits: int = 2) -> str:
    """A difference, with a true minus sign."""
    return f"{value:+.{digits}f}".replace("-", "−")


def _centres(boxes: np.ndarray) -> np.ndarray:
    return (boxes[:, :2] + boxes[:, 2:]) / 2


def _runs(boxes: np.ndarray) -> Iterator[Box]:
    """Boxes that touch in a row as one, so that files stay small and no seam shows."""
    run: list[float] | None = None
    for left, top, right, bottom in boxes.tolist():
        if run and (run[1], run[3]) == (top, bottom) and abs(run[2] - left) < 1e-6:
            run[2] = right
            continue
        if run:
            yield run[0], run[1], run[2], run[3]
        run = [left, top, right, bottom]
    if run:
        yield run[0], run[1], run[2], run[3]
