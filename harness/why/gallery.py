"""What methods keep of three embedded pages, as small pictures for the leaderboard, and the one picture for its front.

Made with the embedded retriever by the rules of an evaluation, so that a method's window and thresholds are those of
its figures on minidocs. What was made once is kept beside the stores, by the code that made it.
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from PIL import Image, ImageColor, ImageDraw

from harness.why.canvas import PageCanvas
from harness.why.kept_vectors import KeptVectors
from harness.why.shapes import areas
from pruners import STANDARD

PAGES = (("minidocs-v1/tables", "38"), ("minidocs-v1/articles", "0"), ("minidocs-v1/charts", "1"))
HERO = ("kcenter", "sap", "kmeans")
HERO_QUERY = "appeal and tractor in 2011"
"""A query of the first of the pages."""
GAP = 6
COLOURS = 64


@dataclass(frozen=True)
class Picture:
    """A method on the three pages at one budget, side by side, as PNG; `told` says what is on it."""

    method: str
    budget: float
    told: str
    data: bytes


def gallery(methods: Sequence[str], stores: Path | None = None) -> dict[str, list[Picture]]:
    """Pictures of built-in methods, one a budget; left out are others, and those that read text instead of pages."""
    from harness.encode import default_root
    from harness.evaluation.methods import COMPOSITIONS
    from pruners import catalogue

    built_in = [e.name for e in catalogue().values() if e.source == "built-in" and e.name not in COMPOSITIONS]
    made = _all_pictures(stores or default_root(), tuple(sorted(built_in)))
    return {text: made[text] for text in methods if text in made}


def hero_picture(stores: Path | None = None) -> bytes:
    """One page under three methods at a tenth of its vectors, with what a query matches: PNG."""
    from harness.cache import default_root
    from harness.evaluation.config import Config
    from harness.progress import quiet
    from harness.why.figure import picture
    from harness.why.show import PageChoice, show_page

    data_set, page = PAGES[0]
    config, asked = Config(pruners=tuple(HERO), budgets=(0.1,)), PageChoice(page, data_set, HERO_QUERY)
    view = show_page(asked, config, stores or default_root(), quiet, lambda text: None)
    return picture(view, "png", words=False)


def painted(canvas: PageCanvas, kept: KeptVectors) -> Image.Image:
    """A page with what was kept of it, in pixels."""
    image = canvas.image.convert("RGBA")
    for area in areas(canvas, kept):
        over = Image.new("RGBA", image.size, (0, 0, 0, 0))
        draw = ImageDraw.Draw(over)
        fill = (*ImageColor.getrgb(area.colour)[:3], round(255 * area.opacity))
        for left, top, right, bottom in area.boxes:
            draw.rectangle((round(left), round(top), round(right) - 1, round(bottom) - 1), fill=fill)
        image = Image.alpha_composite(image, over)
    return image.convert("RGB")


@cache
def _all_pictures(stores: Path, methods: tuple[str, ...]) -> dict[str, list[Picture]]:
    folder = stores / "gallery" / _key(methods)
    if not (folder / "index.json").is_file():
        _write(folder, _made(stores, methods))
    entries = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    found: dict[str, list[Picture]] = {}
    for method, budget, told, name in entries:
        found.setdefault(method, []).append(Picture(method, budget, told, (folder / name).read_bytes()))
    return found


def _made(stores: Path, methods: tuple[str, ...]) -> list[Picture]:
    from harness.backbones import registry
    from harness.backbones.contract import Options
    from harness.benchmarks.benchmark import load_benchmark
    from harness.evaluation.calibration import Setting, calibrated
    from harness.evaluation.config import Config
    from harness.evaluation.methods import choose_methods
    from harness.evaluation.run_folder import RunFolder
    from harness.progress import quiet
    from harness.why.kept_vectors import kept_at
    from harness.why.pages import Pages

    benchmark, backbone, config = load_benchmark("minidocs"), registry.load("nano", Options()), Config()
    sets = {data_set.name: Pages(data_set, None, lambda: backbone) for data_set in benchmark.data_sets}
    here = {*backbone.card.signals, "grid"}
    fit = [method for method in choose_methods(methods, 1) if here.issuperset(method.pruner.needs)]
    with tempfile.TemporaryDirectory() as scratch:
        setting = Setting(config, benchmark, backbone, stores, 1, quiet, lambda text: None)
        ready = calibrated(setting, {}, fit, RunFolder(Path(scratch)))
    shown = []
    for name, page_id in PAGES:
        pages = sets[name]
        index = pages.index(page_id)
        page = pages.page(index)
        gold = [pages.query_vectors(query) for query in pages.gold_queries(page_id)]
        shown.append((page, pages.canvas(index, page, 224), gold))
    found = []
    for method in ready:
        kept = [kept_at(method.pruner, page, config.budgets, seed=config.seed, gold=gold) for page, _, gold in shown]
        for b, budget in enumerate(config.budgets):
            strip = _beside([painted(canvas, left[b]) for (_, canvas, _), left in zip(shown, kept, strict=True)])
            counts = ", ".join(f"{len(left[b])} of {len(left[b].labels)}" for left in kept)
            told = f"three pages under {method.text} at {100 * budget:g} %: {counts} vectors"
            found.append(Picture(method.text, budget, told, _png(strip)))
    return found


def _beside(images: Sequence[Image.Image]) -> Image.Image:
    width = sum(image.width for image in images) + GAP * (len(images) - 1)
    whole = Image.new("RGB", (width, max(image.height for image in images)), "#8d9199")
    left = 0
    for image in images:
        whole.paste(image, (left, 0))
        left += image.width + GAP
    return whole


def _png(image: Image.Image) -> bytes:
    data = io.BytesIO()
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(data, "PNG", optimize=True)
    return data.getvalue()


def _write(folder: Path, pictures: Sequence[Picture]) -> None:
    """The index goes last: where it is, the pictures are whole."""
    from harness.files import write_atomically

    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for number, each in enumerate(pictures):
        name = f"{number:03}.png"
        write_atomically(folder / name, each.data)
        entries.append((each.method, each.budget, each.told, name))
    write_atomically(folder / "index.json", json.dumps(entries).encode())


def _key(methods: tuple[str, ...]) -> str:
    """Of everything that a picture depends on: methods, retriever, pages, and the code and libraries behind them."""
    from harness.backbones import registry
    from harness.backbones.contract import Options
    from harness.backbones.made_with import made_with
    from harness.evaluation.made_by import measuring
    from harness.store.format import store_key
    from pruners.core import source

    root = Path(__file__).parents[2]
    files = [*(root / "pruners").glob("*.py"), *Path(__file__).parent.glob("*.py")]
    backbone = registry.load("nano", Options())
    parts = {"methods": methods, "pages": PAGES, "budgets": STANDARD, "nano": backbone.card.revision}
    return store_key({**parts, **measuring(), "code": source.fingerprint(files, root), "made": made_with(backbone)})
