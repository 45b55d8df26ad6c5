"""What a page says, before it is drawn: its words, its place and year, its charts. Also families of near-twin pages.

A query is answered by the pages whose facts contain all of the query's facts; that one rule makes the qrels.
Pages come in families whose members differ in one or two facts: the hard negatives of each other.
"""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Iterable
from dataclasses import dataclass

from .vocabulary import CHART_KINDS, COLOURS, COUNTRIES, TOPIC_OF, TOPICS, YEARS

FAMILY = 4
LAYOUTS = ("report", "table", "chart", "slide", "article")
CHARTS_OF = {"report": (0, 1), "table": (0,), "chart": (1, 2), "slide": (0, 1, 1), "article": (0,)}
"""How many charts a layout carries; one is drawn from the tuple."""


@dataclass(frozen=True)
class Chart:
    kind: str
    colour: str

    @property
    def fact(self) -> str:
        return f"{self.colour} {self.kind} chart"


@dataclass(frozen=True)
class PageSpec:
    """The content of one page. The first two `words` are its title; `side` words come from another topic."""

    layout: str
    words: tuple[str, ...]
    side: tuple[str, ...]
    country: str
    year: str
    charts: tuple[Chart, ...]

    @property
    def title(self) -> tuple[str, str]:
        return self.words[0], self.words[1]

    @property
    def topic(self) -> str:
        return TOPIC_OF[self.words[0]].name

    @functools.cached_property
    def facts(self) -> frozenset[str]:
        """Everything a query can ask of this page: drawn words, charts, and the topic, which is not drawn."""
        charts = (chart.fact for chart in self.charts)
        return frozenset((*self.words, *self.side, self.country, self.year, f"topic {self.topic}", *charts))


def make_page(rng: random.Random, layout: str) -> PageSpec:
    topic, other = rng.sample(TOPICS, 2)
    charts = tuple(_chart(rng) for _ in range(rng.choice(CHARTS_OF[layout])))
    while len(set(charts)) < len(charts):
        charts = (*charts[:-1], _chart(rng))
    return PageSpec(
        layout,
        tuple(rng.sample(topic.concepts, 4)),
        tuple(rng.sample(other.concepts, 2)),
        rng.choice(list(COUNTRIES)),
        rng.choice(YEARS),
        charts,
    )


def make_family(rng: random.Random, layouts: Iterable[str]) -> list[PageSpec]:
    """A page and its near-twins: same topic and mostly the same facts, one or two of them changed."""
    layouts = list(layouts)
    first = make_page(rng, layouts[0])
    family = [first]
    while len(family) < len(layouts):
        twin = _redraw_charts(first, layouts[len(family)], rng)
        for what in rng.sample(("country", "year", "word", "side", "chart"), rng.choice((1, 2))):
            twin = _change(twin, what, rng)
        if all(twin.facts != page.facts for page in family):
            family.append(twin)
    return family


def make_corpus(rng: random.Random, layouts: tuple[str, ...], pages: int) -> list[PageSpec]:
    """`pages` pages of the given layouts, in families, with no two pages of equal facts."""
    corpus: list[PageSpec] = []
    while len(corpus) < pages:
        family = make_family(rng, [rng.choice(layouts) for _ in range(min(FAMILY, pages - len(corpus)))])
        if not {page.facts for page in family} & {page.facts for page in corpus}:
            corpus.extend(family)
    return corpus


def _chart(rng: random.Random) -> Chart:
    return Chart(rng.choice(list(CHART_KINDS)), rng.choice(list(COLOURS)))


def _redraw_charts(page: PageSpec, layout: str, rng: random.Random) -> PageSpec:
    """The page in another layout, with as many charts as that layout carries."""
    count = rng.choice(CHARTS_OF[layout])
    charts = page.charts[:count]
    while len(charts) < count:
        chart = _chart(rng)
        if chart not in charts:
            charts = (*charts, chart)
    return dataclasses.replace(page, layout=layout, charts=charts)


def _change(page: PageSpec, what: str, rng: random.Random) -> PageSpec:
    if what == "country":
        return dataclasses.replace(page, country=rng.choice([c for c in COUNTRIES if c != page.country]))
    if what == "year":
        return dataclasses.replace(page, year=rng.choice([y for y in YEARS if y != page.year]))
    if what == "side":
        return dataclasses.replace(page, side=_swap(page.side, rng))
    if what == "chart" and page.charts:
        colours = [c for c in COLOURS if Chart(page.charts[0].kind, c) not in page.charts]
        recoloured = dataclasses.replace(page.charts[0], colour=rng.choice(colours))
        return dataclasses.replace(page, charts=(recoloured, *page.charts[1:]))
    return dataclasses.replace(page, words=_swap(page.words, rng))


def _swap(words: tuple[str, ...], rng: random.Random) -> tuple[str, ...]:
    """One of the words replaced by another of its topic."""
    place = rng.randrange(len(words))
    other = rng.choice([w for w in TOPIC_OF[words[0]].concepts if w not in words])
    return (*words[:place], other, *words[place + 1 :])
