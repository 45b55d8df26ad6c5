"""Page views and explanations as HTML: one file that needs nothing else, with nothing in it that could run but ours.

Everything that comes from outside (queries, ids, names) is escaped by the templates; the policy of the page lets one
script run, by its hash. A page's picture is in the file once, however often it is drawn.
"""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup
from PIL import Image

from harness.why.page_view import DrawnCell, PageView
from harness.why.shapes import areas, lost_colour, moves, numbers, signed
from harness.why.tokens import runs

if TYPE_CHECKING:
    from harness.why.explain import Explanation

QUALITIES = (72, 40, 15)
"""Of WebP: at the first, words stay readable at half the bytes of the usual 80; the others are for large files."""
MOST_BYTES = 6_000_000
"""Of an explanation with twenty queries."""


def explanation_page(found: Explanation) -> str:
    """`harness explain` as one file: as good pictures as find room in it."""
    views = [panel.view for case in found.cases for panel in case.panels]
    for quality in QUALITIES:
        pictures: dict[str, tuple[str, tuple[int, int]]] = {}
        names = {}
        for view in views:
            name, uri = embedded(view.canvas.image, quality)
            names[id(view)] = name
            pictures[name] = (uri, view.canvas.size)
        page = _page("explain.html.j2", f"{found.method} on {found.benchmark}", names, found=found, pictures=pictures)
        if len(page) <= MOST_BYTES * max(1, len(found.cases) / 20):
            break
    return page


def view_page(view: PageView) -> str:
    """`harness show` as one file."""
    title = f"{view.data_set}, page {view.page_id}"
    names, pictures = _pictures(view)
    return _page("show.html.j2", title, names, view=view, pictures=pictures, heats=_heats(view), bare=False)


def view_fragment(view: PageView) -> str:
    """The same for a notebook, beside whatever else is on its page."""
    template = _environment().get_template("show.html.j2")
    style = Markup(f"<style>{_asset('why.css')}</style>")
    names, pictures = _pictures(view)
    more = {"pictures": pictures, "heats": _heats(view), "bare": True, "style": style}
    return template.render(view=view, **more, **_shared(names))


def embedded(image: Image.Image, quality: int = QUALITIES[0]) -> tuple[str, str]:
    """A name for a picture, by its content, and the picture itself as an address."""
    data = io.BytesIO()
    image.save(data, "WEBP", quality=quality, method=4)
    name = hashlib.sha256(data.getvalue()).hexdigest()[:12]
    return f"p{name}", f"data:image/webp;base64,{base64.b64encode(data.getvalue()).decode()}"


def _pictures(view: PageView) -> tuple[dict[int, str], dict[str, tuple[str, tuple[int, int]]]]:
    name, uri = embedded(view.canvas.image)
    return {id(view): name}, {name: (uri, view.canvas.size)}


def _heats(view: PageView) -> list[tuple[str, list[tuple[str, bool]]]]:
    """Of each signal a picture a layer, and whether it is in the window."""
    if view.layers is None:
        return []
    from harness.why.figure import heat

    window = view.layers.window
    found = []
    for name, signal in view.layers.signals.items():
        stop = (window.stop or len(signal)) if window else 0
        layers = []
        for layer, values in enumerate(signal):
            inside = window is not None and window.start <= layer < stop
            layers.append((embedded(heat(view, values.numpy()))[1], inside))
        found.append((name, layers))
    return found


def _page(template: str, title: str, names: Mapping[int, str], **values: Any) -> str:
    script, style = _asset("why.js"), _asset("why.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    ours = {"script": Markup(script), "style": Markup(f"<style>{style}</style>")}
    return _environment().get_template(template).render(title=title, policy=policy, **ours, **values, **_shared(names))


def _shared(names: Mapping[int, str]) -> dict[str, Any]:
    """What templates call; `names` are those of the views' pictures."""
    return {
        "areas": lambda view, cell: areas(view.canvas, cell.kept),
        "numbers": lambda view, cell: numbers(view.canvas, cell.kept),
        "moves": lambda view, cell: moves(view.canvas, cell),
        "key": lambda view: names[id(view)],
        "path": path,
        "shade": shade,
        "told": told,
        "runs": runs,
    }


def path(boxes: Sequence[tuple[float, float, float, float]]) -> str:
    """Boxes as one SVG path."""
    return "".join(f"M{x:.2f} {y:.2f}H{right:.2f}V{bottom:.2f}H{x:.2f}z" for x, y, right, bottom in boxes)


def shade(lost: float) -> str:
    """The background of a token by the similarity that it lost."""
    colour, strength = lost_colour(lost)
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgb({red} {green} {blue} / {0.6 * strength:.2f})"


def told(view: PageView, cell: DrawnCell) -> str:
    """A picture in words, for those who do not see it."""
    return f"page {view.page_id} of {view.data_set} under {cell.method} at {100 * cell.budget:.3g} %: {cell.told}"


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FunctionLoader(_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["signed"] = signed
    made.filters["percent"] = lambda value: f"{100 * value:.3g} %"
    return made


@cache
def _asset(name: str) -> str:
    return (files("harness.why") / "templates" / name).read_text(encoding="utf-8")
