"""What is asked: facts put into words in English or French, and the pages that answer.

Five kinds: `words` and `title` (letters on the page), `chart` (kind and colour, seen and not read), `paraphrase` (a
synonym that is never drawn), `topic` (the name of the field, never drawn). The text is made from the facts alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .specs import PageSpec
from .vocabulary import FRENCH, SYNONYMS

KINDS = ("words", "title", "chart", "paraphrase", "topic")
LANGUAGES = ("english", "french")

_TEMPLATES = {
    ("plain", "english"): (
        "which page covers {things} {where}",
        "what is said about {things} {where}",
        "{things} {where}",
        "document about {things} {where}",
    ),
    ("plain", "french"): (
        "quelle page traite de {things} {where}",
        "que dit le document sur {things} {where}",
        "{things} {where}",
        "document sur {things} {where}",
    ),
    ("title", "english"): ("report titled {things} {where}", "show the report on {things} {where}"),
    ("title", "french"): ("rapport intitulé {things} {where}", "le rapport sur {things} {where}"),
    ("chart", "english"): (
        "{colour} {kind} chart of {things} {where}",
        "show the {colour} {kind} chart about {things} {where}",
    ),
    ("chart", "french"): (
        "graphique en {kind} {colour} sur {things} {where}",
        "quelle page avec {kind} {colour} pour {things} {where}",
    ),
}
_AND = {"english": "and", "french": "et"}
_IN = {"english": "in", "french": "en"}


@dataclass(frozen=True)
class Ask:
    """What a query wants: facts in the order they are said. `synonym` is the word that is said by its synonym."""

    kind: str
    facts: tuple[str, ...]
    synonym: str | None = None


@dataclass(frozen=True)
class Query:
    text: str
    language: str
    ask: Ask


def phrase(ask: Ask, language: str, rng: random.Random) -> Query:
    """Put the facts into words. French has its own word for a concept and none of its synonyms."""
    style = ask.kind if ask.kind in ("title", "chart") else "plain"
    template = rng.choice(_TEMPLATES[style, language])
    chart = next((fact for fact in ask.facts if fact.endswith(" chart")), None)
    colour, kind = chart.split()[:2] if chart else ("", "")
    places = [fact for fact in ask.facts if fact[0].isupper() or fact.isdigit()]
    things = [fact for fact in ask.facts if fact not in places and fact != chart]

    def say(fact: str) -> str:
        word = fact.removeprefix("topic ")
        if language == "french":
            return FRENCH.get(word, word)
        return SYNONYMS[word] if word == ask.synonym else word

    where = " ".join((_IN[language], *map(say, places))) if places else ""
    text = template.format(
        things=f" {_AND[language]} ".join(map(say, things)), where=where, colour=say(colour), kind=say(kind)
    )
    return Query(" ".join(text.split()).lower(), language, ask)


def _some_place(page: PageSpec, rng: random.Random) -> list[str]:
    return rng.choice(([page.country], [page.year], [page.country, page.year]))


def _words(page: PageSpec, rng: random.Random) -> Ask:
    words = rng.sample((*page.words, *page.side), rng.choice((2, 3)))
    return Ask("words", (*words, *(_some_place(page, rng) if rng.random() < 0.8 else ())))


def _title(page: PageSpec, rng: random.Random) -> Ask:
    return Ask("title", (*page.title, *_some_place(page, rng)))


def _chart(page: PageSpec, rng: random.Random) -> Ask | None:
    if not page.charts:
        return None
    word = rng.choice((*page.words, *page.side))
    return Ask("chart", (rng.choice(page.charts).fact, word, *_some_place(page, rng)))


def _paraphrase(page: PageSpec, rng: random.Random) -> Ask | None:
    said = [word for word in (*page.words, *page.side) if word in SYNONYMS]
    if not said:
        return None
    word = rng.choice(said)
    other = rng.choice([other for other in (*page.words, *page.side) if other != word])
    return Ask("paraphrase", (word, other, *_some_place(page, rng)), synonym=word)


def _topic(page: PageSpec, rng: random.Random) -> Ask:
    other = rng.sample(page.side, rng.choice((1, 2)))
    return Ask("topic", (f"topic {page.topic}", *other, *_some_place(page, rng)))


_ASK: dict[str, Callable[[PageSpec, random.Random], Ask | None]] = {
    "words": _words,
    "title": _title,
    "chart": _chart,
    "paraphrase": _paraphrase,
    "topic": _topic,
}


def answers(ask: Ask, corpus: Sequence[PageSpec]) -> list[int]:
    """The pages that satisfy every fact asked for."""
    return [place for place, page in enumerate(corpus) if page.facts.issuperset(ask.facts)]


def ask_for_one(corpus: Sequence[PageSpec], target: int, kind: str, rng: random.Random, tries: int = 12) -> Ask | None:
    """A question of this kind that the target page alone answers, while another page misses just one of its facts."""
    for _ in range(tries):
        ask = _ASK[kind](corpus[target], rng)
        if ask is not None and answers(ask, corpus) == [target] and near_misses(ask, corpus):
            return ask
    return None


def ask_for_several(
    corpus: Sequence[PageSpec], target: int, kind: str, rng: random.Random, fewest: int, most: int, tries: int = 12
) -> Ask | None:
    """A question that the target and between `fewest - 1` and `most - 1` others answer: drops facts until it fits."""
    for _ in range(tries):
        ask = _ASK[kind](corpus[target], rng)
        while ask is not None and len(ask.facts) > 2 and len(answers(ask, corpus)) < fewest:
            keep = [fact for fact in ask.facts[1:] if fact != ask.synonym]
            dropped = rng.choice(keep)
            ask = Ask(ask.kind, tuple(fact for fact in ask.facts if fact != dropped), ask.synonym)
        if ask is not None and fewest <= len(answers(ask, corpus)) <= most and near_misses(ask, corpus):
            return ask
    return None


def near_misses(ask: Ask, corpus: Sequence[PageSpec]) -> list[int]:
    """The hard negatives: pages that miss exactly one of the facts."""
    return [place for place, page in enumerate(corpus) if len(set(ask.facts) - page.facts) == 1]
