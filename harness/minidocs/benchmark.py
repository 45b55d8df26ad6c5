"""The named datasets: which pages, which queries, which pages answer. Building one is a pure function of its recipe.

v1 has one kind of page a dataset and one gold page a query. v2 mixes the kinds, asks each question in both languages,
and several pages answer; in `surveys` a page that misses only the last fact still counts, with grade 1 instead of 2.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PIL import Image

from pruners.core.errors import PruneBoardError

from .layouts import render
from .queries import KINDS, LANGUAGES, Ask, Query, answers, ask_for_one, ask_for_several, phrase
from .specs import LAYOUTS, PageSpec, make_corpus


@dataclass(frozen=True)
class Recipe:
    """How a dataset is made. `gold` is `one`, `several` or `graded`; `asks` counts questions before translation."""

    name: str
    layouts: tuple[str, ...]
    pages: int
    asks: int
    gold: str = "one"
    languages: tuple[str, ...] = ("english",)
    one_query_a_page: bool = False


@dataclass(frozen=True)
class DrawnDataSet:
    """Pages, queries and grades by position: `qrels[query][page]`."""

    recipe: Recipe
    pages: tuple[PageSpec, ...]
    queries: tuple[Query, ...]
    qrels: Mapping[int, Mapping[int, int]]

    def image(self, page: int) -> Image.Image:
        return render(self.pages[page], random.Random(f"minidocs/{self.recipe.name}/page/{page}")).image


V1 = tuple(
    Recipe(name, (layout,), 152, 100)
    for name, layout in zip(("reports", "tables", "charts", "slides", "articles"), LAYOUTS, strict=True)
)
V2 = (
    Recipe("briefs", LAYOUTS, 200, 80, "several", LANGUAGES),
    Recipe("surveys", LAYOUTS, 200, 80, "graded", LANGUAGES),
)
CALIBRATION = Recipe("calibration", LAYOUTS, 500, 500, languages=LANGUAGES, one_query_a_page=True)
BENCHMARKS: Mapping[str, tuple[Recipe, ...]] = {
    "minidocs-v1": V1,
    "minidocs-v2": V2,
    "minidocs-calibration": (CALIBRATION,),
}


def build(recipe: Recipe) -> DrawnDataSet:
    rng = random.Random(f"minidocs/{recipe.name}")
    if recipe.one_query_a_page:
        pages, asks = _answerable_pages(recipe, rng)
    else:
        pages = make_corpus(rng, recipe.layouts, recipe.pages)
        asks = _asks(recipe, pages, rng)
    queries: list[Query] = []
    qrels: dict[int, dict[int, int]] = {}
    for place, ask in enumerate(asks):
        # Calibration pairs one query with one page, so its languages alternate instead of doubling the queries.
        languages = recipe.languages if not recipe.one_query_a_page else (recipe.languages[place % 2],)
        for language in languages:
            qrels[len(queries)] = grades(ask, pages, recipe.gold)
            queries.append(phrase(ask, language, rng))
    return DrawnDataSet(recipe, tuple(pages), tuple(queries), qrels)


def grades(ask: Ask, pages: Sequence[PageSpec], gold: str) -> dict[int, int]:
    """The one rule of the qrels: pages with every fact; if graded they are 2, pages that miss only the last 1."""
    if gold != "graded":
        return dict.fromkeys(answers(ask, pages), 1)
    core = Ask(ask.kind, ask.facts[:-1], ask.synonym)
    return dict.fromkeys(answers(core, pages), 1) | dict.fromkeys(answers(ask, pages), 2)


def _asks(recipe: Recipe, pages: list[PageSpec], rng: random.Random) -> list[Ask]:
    """Questions of all kinds in turn, about pages in random order; a kind that a page cannot serve is passed over."""
    asks: list[Ask] = []
    targets: list[int] = []
    for attempt in range(100 * recipe.asks):
        if len(asks) == recipe.asks:
            return asks
        targets = targets or rng.sample(range(len(pages)), len(pages))
        ask = _ask(recipe, pages, targets.pop(), KINDS[attempt % len(KINDS)], rng)
        if ask is not None and all(set(ask.facts) != set(other.facts) for other in asks):
            asks.append(ask)
    raise PruneBoardError(
        f"dataset {recipe.name!r}: only {len(asks)} of {recipe.asks} questions found; give it more pages"
    )


def _ask(recipe: Recipe, pages: list[PageSpec], target: int, kind: str, rng: random.Random) -> Ask | None:
    if recipe.gold == "one":
        return ask_for_one(pages, target, kind, rng)
    if recipe.gold == "several":
        return ask_for_several(pages, target, kind, rng, 2, 6)
    ask = ask_for_several(pages, target, kind, rng, 1, 4)
    if ask is None or len(ask.facts) < 3:
        return None
    return ask if len(answers(ask, pages)) < len(grades(ask, pages, "graded")) <= 8 else None


def _answerable_pages(recipe: Recipe, rng: random.Random) -> tuple[list[PageSpec], list[Ask]]:
    """Pages that alone answer some question, each with one. Drawn from a larger set: a near-twin may say less."""
    candidates = make_corpus(rng, recipe.layouts, 2 * recipe.pages)
    pages: list[PageSpec] = []
    asks: list[Ask] = []
    for target in range(len(candidates)):
        if len(pages) == recipe.pages:
            return pages, asks
        found = (ask_for_one(candidates, target, kind, rng) for kind in rng.sample(KINDS, len(KINDS)))
        ask = next((ask for ask in found if ask is not None), None)
        if ask is not None:
            pages.append(candidates[target])
            asks.append(ask)
    raise PruneBoardError(f"dataset {recipe.name!r}: only {len(pages)} of {recipe.pages} pages answer a question alone")
