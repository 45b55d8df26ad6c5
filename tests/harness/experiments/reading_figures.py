"""What a reader of a printed figure needs, checked on the figure itself: labels, a legend, no need of colour."""

from collections.abc import Callable

from matplotlib.category import StrCategoryLocator
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D


def complaints(draw: Callable[[Figure], None]) -> list[str]:
    figure = Figure(layout="constrained")
    draw(figure)
    found = []
    if not figure.axes:
        return ["it has no axes"]
    first = figure.axes[0]
    names = isinstance(first.yaxis.get_major_locator(), StrCategoryLocator)  # which speak for themselves
    if not first.get_ylabel() and not names:
        found.append("no label on the y axis")
    for place, axes in enumerate(figure.axes):
        if not axes.get_xlabel():
            found.append(f"no label on the x axis of panel {place}")
        if not axes.has_data():
            found.append(f"panel {place} is empty")
        lines = [line for line in axes.get_lines() if not line.get_label().startswith("_")]
        looks = [(line.get_marker(), _dashes(line)) for line in lines]
        if len(set(looks)) != len(looks):
            found.append(f"lines of panel {place} differ by colour alone")
        hatches = [box[0].get_hatch() for box in axes.containers if hasattr(box, "patches") and len(box)]
        if len(set(hatches)) != len(hatches):
            found.append(f"bars of panel {place} differ by colour alone")
        clouds = [c for c in axes.collections if isinstance(c, PathCollection)]
        markers = [(str(c.get_paths()[0].vertices.tolist()), len(c.get_facecolor())) for c in clouds]
        if len(set(markers)) != len(markers):
            found.append(f"points of panel {place} differ by colour alone")
    if not figure.legends:
        found.append("no legend")
    if any(legend.get_window_extent().width > figure.bbox.width for legend in figure.legends):
        found.append("the legend is wider than the figure")
    return found


def _dashes(line: Line2D) -> str:
    return str(line._unscaled_dash_pattern)  # matplotlib has no public way to read the dashes of a line
