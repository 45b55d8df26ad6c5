"""How figures look: readable in black and white (markers, dashes and hatches tell series apart, colours only help),
labelled with units, and the same bytes for the same data."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "0.88",
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.framealpha": 0.9,
    "hatch.linewidth": 0.6,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "pruneboard",
}


@dataclass(frozen=True)
class Look:
    """One series. Colours are Okabe and Ito's, in an order in which neighbours also differ in lightness."""

    color: str
    marker: str
    line: str
    hatch: str


LOOKS = (
    Look("#009E73", "o", "-", ""),
    Look("#000000", "s", "--", "////"),
    Look("#E69F00", "^", "-.", "...."),
    Look("#56B4E9", "D", ":", "\\\\\\\\"),
    Look("#D55E00", "v", (0, (5, 1, 1, 1)), "xxxx"),  # type: ignore[arg-type]
    Look("#0072B2", "P", (0, (1, 1)), "----"),  # type: ignore[arg-type]
    Look("#CC79A7", "X", (0, (7, 3)), "oooo"),  # type: ignore[arg-type]
    Look("#999999", "*", (0, (3, 1, 1, 1, 1, 1)), "++++"),  # type: ignore[arg-type]
)


def looks(names: Iterable[str]) -> dict[str, Look]:
    """A look for every series, the same in all panels of a figure; there are eight, then they come round again."""
    return {name: LOOKS[i % len(LOOKS)] for i, name in enumerate(dict.fromkeys(names))}


def render(draw: Callable[[Figure], None], title: str = "") -> dict[str, bytes]:
    """The figure as SVG and PNG, under a title that says whose they are; joint figures say it in each panel."""
    files = {}
    with matplotlib.rc_context(STYLE):
        for ending in ("svg", "png"):
            figure = Figure(figsize=(6.4, 4.0), layout="constrained")
            draw(figure)
            if title:
                figure.suptitle(title, fontsize=11, fontweight="bold")
            files[ending] = saved(figure, ending)
    return files


def saved(figure: Figure, ending: str) -> bytes:
    """A figure as the same bytes every time."""
    data = io.BytesIO()
    bare = {"Date": None} if ending == "svg" else {"Software": None}
    figure.savefig(data, format=ending, dpi=150, metadata=bare)
    return _without_noise(data.getvalue().decode()).encode() if ending == "svg" else data.getvalue()


def _without_noise(svg: str) -> str:
    """The solver of the layout leaves noise in the last digits of coordinates, and of these matplotlib makes the names
    of clip paths: coordinates are rounded, names are counted.
    """
    names: dict[str, str] = {}
    svg = re.sub(
        r'((?:id="|url\(#|href="#)[A-Za-z]+?)([0-9a-f]{10})\b',
        lambda found: found[1] + names.setdefault(found[2], str(len(names))),
        svg,
    )
    return re.sub(r"\d+\.\d{4,}", lambda found: f"{float(found[0]):.3f}", svg)


def panels(figure: Figure, titles: Sequence[str], *, share_y: bool = True, height: float = 3.4) -> list[Axes]:
    """Panels side by side, one a title; a single one has none."""
    columns = min(3, len(titles))
    rows = -(-len(titles) // columns)
    figure.set_size_inches(max(5.6, 4.2 * columns), height * rows)
    axes = figure.subplots(rows, columns, squeeze=False, sharey=share_y).ravel()
    for place, title in zip(axes, titles, strict=False):
        if len(titles) > 1:
            place.set_title(title)
    for unused in axes[len(titles) :]:
        unused.remove()
    return list(axes[: len(titles)])


def line(axes: Axes, x: Sequence[float], y: Sequence[float], look: Look, label: str, **more: Any) -> None:
    options = {"markersize": 5, "linewidth": 1.4, "markerfacecolor": "white", **more}
    axes.plot(x, y, color=look.color, marker=look.marker, linestyle=look.line, label=label, **options)


def interval_band(axes: Axes, x: Sequence[float], intervals: Sequence[Sequence[float]], look: Look) -> None:
    """95 % intervals as a light band behind a line."""
    low, high = zip(*intervals, strict=True)
    axes.fill_between(x, low, high, color=look.color, alpha=0.15, linewidth=0)


def bars(axes: Axes, groups: Sequence[str], series: Mapping[str, Sequence[float]], look: Mapping[str, Look]) -> None:
    """Bars in groups, told apart by hatches. A value that is not known leaves a gap."""
    width = 0.8 / len(series)
    for i, (name, values) in enumerate(series.items()):
        x = [place + (i + 0.5) * width - 0.4 for place in range(len(groups))]
        kind = look[name]
        axes.bar(x, values, width, label=name, color=kind.color, hatch=kind.hatch, edgecolor="white", linewidth=0.4)
    axes.set_xticks(range(len(groups)), groups)
    axes.grid(axis="x", visible=False)


def retention_against_budget(rows: Sequence[Mapping[str, Any]], title: str) -> Figure:
    """A line a method, with bands for the 95 % intervals: of rows that `summarise` made."""
    import matplotlib.pyplot as plt

    with matplotlib.rc_context(STYLE):
        figure = plt.figure(figsize=(6.4, 4.4), layout="constrained")  # pyplot's: a notebook knows how to show it
        plt.close(figure)  # or it is shown twice, because notebooks show what pyplot holds open
        axes = figure.subplots()
        for name, look in looks(row["method"] for row in rows).items():
            own = sorted((row for row in rows if row["method"] == name), key=lambda row: row["budget"])
            budgets = [row["budget"] for row in own]
            line(axes, budgets, [row["retention"] for row in own], look, name)
            interval_band(axes, budgets, [row["retention_interval"] for row in own], look)
        axes.set(xlabel="budget γ (part of the vectors kept)", ylabel="retention of NDCG@5, %", title=title)
        if rows:
            legend(figure, axes)
    return figure


def legend(figure: Figure, axes: Axes, columns: int = 4, also: Axes | None = None) -> None:
    """One legend below all panels: the series of one, and those that only another one has."""
    known: dict[str, Artist] = {}
    for place in (axes, also) if also else (axes,):
        for handle, label in zip(*place.get_legend_handles_labels(), strict=True):
            known.setdefault(label, handle)
    for count in range(min(columns, len(known)), 0, -1):  # as many beside each other as the figure is wide for
        made = figure.legend(known.values(), known, loc="outside lower center", ncols=count, frameon=False)
        if count == 1 or made.get_window_extent().width <= figure.bbox.width:
            return
        made.remove()


def layer_bands(axes: Axes, window: tuple[int, int], boundary: int, layers: int) -> None:
    """The window and the alignment region behind a curve over layers, told apart by hatches."""
    axes.axvspan(window[0] - 0.5, window[1] - 0.5, color="#56B4E9", alpha=0.3, linewidth=0, label="window")
    if boundary < layers:
        axes.axvspan(
            boundary - 0.5,
            layers - 0.5,
            facecolor="none",
            edgecolor="#D55E00",
            hatch="//",
            linewidth=0,
            label="alignment",
        )
