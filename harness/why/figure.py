"""A page view as a figure for a paper: PNG and SVG, the same bytes for the same page."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from harness.why.kept_vectors import MERGED
from harness.why.page_view import DrawnCell, PageView
from harness.why.shapes import areas, group_colour, lost_colour, moves, numbers, signed
from harness.why.tokens import runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

PANEL = 2.1
"""Inches of a panel's width."""
BEFORE, AFTER, STAYS = "#e69f00", "#0072b2", "#009e73"
HEAT, HOTTEST = "magma", "#fcfdbf"
TOLD = 0.005
"""Similarity below which a token of the template is not worth a word."""
ROOM = 19
"""Letters that find room below a panel."""
LAYER_PIXELS = 220
"""Of a heat map's longer side: it has a colour a patch."""


def picture(view: PageView, kind: str, words: bool = True) -> bytes:
    """The figure as `png` or `svg`, with what the query's tokens lost in words below."""
    import matplotlib
    from matplotlib.figure import Figure

    from harness.drawing.figures import STYLE, saved

    with matplotlib.rc_context({**STYLE, "axes.grid": False}):
        figure = Figure(layout="constrained")
        draw(figure, view, words)
        return saved(figure, kind)


def draw(figure: Figure, view: PageView, tell: bool = True) -> None:
    """Fill a figure, and size it by what there is."""
    rows = _panels(view)
    across = 1 + len(rows[0])
    pages = panels_height(view)
    strip = _strip_height(view) if view.layers else 0.0
    words = 0.34 + 0.16 * len(_token_lines(view, across)) if view.query and tell else 0.0
    figure.set_size_inches(PANEL * across + 0.3, pages + strip + words + 0.35)
    shares = [share for share in (pages, strip, words) if share]
    parts = figure.subfigures(len(shares), 1, height_ratios=shares, squeeze=False)[:, 0]
    draw_panels(parts[0], view)
    if view.layers:
        across_layers = max(signal.shape[0] for signal in view.layers.signals.values())
        draw_layers(parts[1].subplots(len(view.layers.signals), across_layers, squeeze=False), view)
        _layer_legend(parts[1], view)
    if words:
        _words(parts[-1], view, across)
    asked = f": “{view.query.text}”" if view.query else ""
    title = textwrap.shorten(f"{view.data_set}, page {view.page_id}{asked}", 28 * across, placeholder=" …")
    figure.suptitle(title, fontsize=9, fontweight="bold", parse_math=False)


def panels_height(view: PageView) -> float:
    """Inches that the panels of a view need."""
    width, height = view.canvas.size
    return len(_panels(view)) * (PANEL * height / width + 0.5) + 0.35


def draw_panels(part: Figure | SubFigure, view: PageView) -> None:
    """The page, and beside it what each method keeps at each budget."""
    rows = _panels(view)
    grid = part.subplots(len(rows), 1 + len(rows[0]), squeeze=False)
    _page_on(grid[0, 0], view, "", f"{len(view.canvas.boxes)} vectors")
    grid[0, 0].set_ylabel("the page", fontsize=8)
    for axes in grid[1:, 0]:
        axes.remove()
    for axes, cell in zip(grid[:, 1:].ravel(), (cell for row in rows for cell in row), strict=True):
        _page_on(axes, view, f"{cell.method} at {100 * cell.budget:.3g} %", f"{len(cell.kept)} vectors")
        _overlay(axes, view, cell)
    _legend(part, view)


def _page_on(axes: Axes, view: PageView, title: str, below: str) -> None:
    width, height = view.canvas.size
    axes.imshow(view.canvas.image, interpolation="antialiased", extent=(0, width, height, 0))
    axes.autoscale(False)  # what is drawn on the page does not make room around it
    axes.set(xticks=[], yticks=[])
    axes.set_title(title, fontsize=8, parse_math=False)
    axes.set_xlabel(below, fontsize=7)
    for spine in axes.spines.values():
        spine.set(visible=True, color="0.7", linewidth=0.5)


def _legend(part: Figure | SubFigure, view: PageView) -> None:
    """What is on the panels, and nothing else."""
    from matplotlib.artist import Artist
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    kinds = {cell.kept.kind for cell in view.cells}
    entries: dict[str, Artist] = {}
    if any((cell.kept.labels < 0).any() for cell in view.cells):
        entries["kept"] = Patch(facecolor="white", edgecolor="0.4")
        entries["dropped"] = Patch(facecolor="#6a6f78")
    if MERGED in kinds:
        entries["a colour: merged into one vector, with its size"] = Patch(facecolor=group_colour(1), alpha=0.5)
    if view.query:
        ring: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 5}
        entries["best match on the whole page"] = Line2D([], [], color=BEFORE, markerfacecolor="none", **ring)
        entries["of what is left"] = Line2D([], [], color=AFTER, **ring)
        entries["the same"] = Line2D([], [], color=STAYS, markerfacecolor="none", **ring)
    part.legend(entries.values(), entries, loc="outside lower center", ncols=3, frameon=False, fontsize=7)


def _panels(view: PageView) -> list[list[DrawnCell]]:
    """Methods below each other and budgets as columns; methods at one budget stand beside each other."""
    if len(view.rows[0]) == 1:
        return [[row[0] for row in view.rows]]
    return [list(row) for row in view.rows]


def _overlay(axes: Axes, view: PageView, cell: DrawnCell) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    for area in areas(view.canvas, cell.kept):
        boxes = [Rectangle((left, top), right - left, bottom - top) for left, top, right, bottom in area.boxes]
        axes.add_collection(PatchCollection(boxes, facecolor=area.colour, alpha=area.opacity, linewidth=0))
    for number in numbers(view.canvas, cell.kept):
        axes.text(number.x, number.y, number.text, fontsize=5, ha="center", va="center", color="black", clip_on=True)
    for move in moves(view.canvas, cell):
        if view.query and view.query.tokens[move.token].template and abs(move.lost) < TOLD:
            continue
        if move.before and move.after and not move.stays:
            xs, ys = zip(move.before, move.after, strict=True)
            axes.plot(xs, ys, color=BEFORE, linewidth=0.6 + 2 * min(1.0, max(0.0, move.lost)), alpha=0.9)
        if move.before:
            colour = STAYS if move.stays else BEFORE
            axes.plot(*move.before, marker="o", markersize=5, markerfacecolor="none", color=colour)
        if move.after and not move.stays:
            axes.plot(*move.after, marker="o", markersize=3.5, color=AFTER)


def draw_layers(grid: np.ndarray, view: PageView) -> None:
    """A heat map a layer and signal, on axes `grid [signals, layers]`; the layers of the window are framed."""
    assert view.layers is not None
    window = view.layers.window
    for row, (name, signal) in zip(grid, view.layers.signals.items(), strict=True):
        stop = (window.stop or signal.shape[0]) if window else 0
        for layer, axes in enumerate(row):
            if layer >= signal.shape[0]:
                axes.remove()
                continue
            inside = window is not None and window.start <= layer < stop
            axes.imshow(heat(view, signal[layer].numpy()), interpolation="nearest")
            axes.set(xticks=[], yticks=[])
            axes.set_xlabel(str(layer), fontsize=7, color="#b06a00" if inside else "black")
            for spine in axes.spines.values():
                spine.set(visible=True, color=BEFORE if inside else "0.7", linewidth=2.5 if inside else 0.5)
        row[0].set_ylabel(name, fontsize=7)


def _layer_legend(part: SubFigure, view: PageView) -> None:
    from matplotlib.patches import Patch

    entries = [Patch(facecolor=HOTTEST, label="most attention in the layer")]
    if view.layers and view.layers.window:
        label = f"window: layers {view.layers.window}"
        entries.append(Patch(facecolor="none", edgecolor=BEFORE, linewidth=2, label=label))
    part.legend(handles=entries, loc="outside lower center", ncols=2, frameon=False, fontsize=7)


def heat(view: PageView, values: np.ndarray) -> Image.Image:
    """A value a patch as colours, from the lowest of them to the highest."""
    import matplotlib

    width, height = view.canvas.size
    scale = min(1.0, LAYER_PIXELS / max(width, height))
    low, high = float(values.min()), float(values.max())
    share = (values - low) / (high - low) if high > low else np.zeros_like(values)
    colours = matplotlib.colormaps[HEAT](share)[:, :3]
    pixels = np.full((max(1, round(height * scale)), max(1, round(width * scale)), 3), 255, np.uint8)
    for (left, top, right, bottom), colour in zip(
        (view.canvas.boxes * scale).round().astype(int), colours, strict=True
    ):
        pixels[top : max(bottom, top + 1), left : max(right, left + 1)] = (255 * colour).round()
    return Image.fromarray(pixels)


def _strip_height(view: PageView) -> float:
    assert view.layers is not None
    across = max(signal.shape[0] for signal in view.layers.signals.values())
    columns = 1 + len(_panels(view)[0])
    width, height = view.canvas.size
    return len(view.layers.signals) * (PANEL * columns / across * height / width + 0.2) + 0.45


def _token_lines(view: PageView, across: int) -> list[list[tuple[str, float | None]]]:
    """Of each method a line that names it, and its tokens with what they lost at the first budget; long lines wrap.

    Tokens of the template are left out where they lost nothing.
    """
    assert view.query is not None
    lines: list[list[tuple[str, float | None]]] = []
    for row in view.rows:
        hits = row[0].hits
        assert hits is not None
        lines.append([(f"{row[0].method} at {100 * row[0].budget:.3g} %", None)])
        used = _width(lines[-1][0])
        for _, token, lost, count in runs(list(zip(view.query.tokens, hits.lost.tolist(), strict=True))):
            if token.template and abs(lost) < TOLD:
                continue
            word: tuple[str, float | None] = token.text + (f" ×{count}" if count > 1 else ""), lost
            if used + _width(word) > ROOM * across:
                lines.append([])
                used = 0.0
            lines[-1].append(word)
            used += _width(word)
    return lines


def _width(word: tuple[str, float | None]) -> float:
    return len(word[0]) + (2 if word[1] is None else 7)


def _words(part: SubFigure, view: PageView, across: int) -> None:
    """Below the page: the query's tokens, shaded by the similarity that they lost."""
    assert view.query is not None
    lines = _token_lines(view, across)
    down = len(lines) + 1

    def write(x: float, y: float, text: str, **look: Any) -> None:
        part.text(0.01 + 0.98 * x / (ROOM * across), 1 - (y + 0.5) / down, text, fontsize=7, parse_math=False, **look)

    write(0, 0, "similarity that the query's tokens lost")
    for y, line in enumerate(lines):
        x = 0.0
        for text, lost in line:
            colour, strength = lost_colour(lost or 0.0)
            box = {"facecolor": colour, "alpha": 0.75 * strength, "linewidth": 0, "pad": 1.5}
            bold = "bold" if lost is None else "normal"
            shown = text if lost is None else f"{text} {signed(-lost)}"
            write(x, y + 1, shown, bbox=box, fontweight=bold)
            x += _width((text, lost))
