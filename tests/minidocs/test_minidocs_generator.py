"""Pages say what their facts say, queries are answered by exactly their gold pages, and drawing is deterministic."""

from __future__ import annotations

import dataclasses
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.minidocs import drawing, layouts
from harness.minidocs.benchmark import V1, build
from harness.minidocs.files import recipes
from harness.minidocs.layouts import render
from harness.minidocs.queries import KINDS, LANGUAGES, Ask, near_misses, phrase
from harness.minidocs.specs import LAYOUTS, make_corpus, make_family, make_page
from harness.minidocs.vocabulary import FILLERS, FRENCH, NUMBER, SYNONYMS, TOPICS, all_words, drawn_words
from pruners.core.errors import PruneBoardError

ALL = [pytest.param(recipe, id=recipe.name) for _, recipe in recipes()]


@given(st.integers(0, 10**6), st.sampled_from(LAYOUTS))
@settings(max_examples=60, deadline=None)
def test_a_page_shows_its_facts_and_no_others(seed, layout):
    page = make_page(random.Random(seed), layout)
    drawn = render(page, random.Random(seed))
    words = {word.word for word in drawn.words} - set(FILLERS) - {NUMBER}
    assert words == {word.lower() for word in (*page.words, *page.side, page.country, page.year)}
    assert {chart.chart.fact for chart in drawn.charts} == {fact for fact in page.facts if fact.endswith(" chart")}


@given(st.integers(0, 10**6), st.sampled_from(LAYOUTS))
@settings(max_examples=30, deadline=None)
def test_words_stay_on_the_page_and_off_each_other(seed, layout):
    words = render(make_page(random.Random(seed), layout), random.Random(seed)).words
    for word in words:
        left, top, right, bottom = word.box
        assert left >= 0
        assert right <= drawing.SIDE
        assert top // drawing.ROW == (bottom - 1) // drawing.ROW, f"{word} leaves its row of patches"
    for one in words:
        for two in words:
            same_row = one.box[1] // drawing.ROW == two.box[1] // drawing.ROW
            if one is not two and same_row:
                assert one.box[2] <= two.box[0] or two.box[2] <= one.box[0], f"{one} is drawn over {two}"


def test_a_layout_that_forgets_a_word_is_refused(monkeypatch):
    monkeypatch.setitem(layouts._LAYOUT, "slide", lambda canvas, page, rng: canvas.text(page.words[0], 12, 3))
    with pytest.raises(PruneBoardError, match="slide layout drew"):
        render(make_page(random.Random(1), "slide"), random.Random(1))


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ALL)
def test_every_query_is_answered_by_exactly_its_gold_pages(recipe):
    """Recomputed from words, place, year and charts, not with the generator's own rule."""
    data = build(recipe)
    for place, query in enumerate(data.queries):
        missing = [_missing(query.ask, page) for page in data.pages]
        full = {page for page, lost in enumerate(missing) if not lost}
        if recipe.gold == "graded":
            nearly = {page for page, lost in enumerate(missing) if lost == [query.ask.facts[-1]]}
            expected = dict.fromkeys(nearly, 1) | dict.fromkeys(full, 2)
        else:
            expected = dict.fromkeys(full, 1)
        assert data.qrels[place] == expected


def _missing(ask, page):
    shown = {*page.words, *page.side, page.country, page.year}
    charts = {(chart.colour, chart.kind) for chart in page.charts}
    lost = []
    for fact in ask.facts:
        if fact.endswith(" chart"):
            there = tuple(fact.split()[:2]) in charts
        elif fact.startswith("topic "):
            topic = next(topic for topic in TOPICS if topic.name == fact.removeprefix("topic "))
            there = set(page.words) <= set(topic.concepts)
        else:
            there = fact in shown
        if not there:
            lost.append(fact)
    return lost


@pytest.mark.parametrize("recipe", V1, ids=lambda recipe: recipe.name)
def test_every_v1_query_has_a_hard_negative_that_misses_one_fact(recipe):
    data = build(recipe)
    assert all(near_misses(query.ask, data.pages) for query in data.queries)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ALL)
def test_queries_use_the_closed_vocabulary_and_are_distinct(recipe):
    queries = [query.text for query in build(recipe).queries]
    assert {word for text in queries for word in text.split()} <= set(all_words())
    assert len(set(queries)) == len(queries)


def test_synonyms_and_topic_names_never_stand_on_a_page():
    assert not set(drawn_words()) & {*SYNONYMS.values(), *(topic.name for topic in TOPICS)}


def test_each_query_word_has_one_meaning():
    """A French word, a synonym and a drawn word coincide only where they mean the same concept."""
    meaning: dict[str, str] = {word: word for word in drawn_words()}
    pairs = [
        *((s, c) for c, s in SYNONYMS.items()),
        *((french.lower(), word.lower()) for word, french in FRENCH.items()),
    ]
    for word, concept in pairs:
        assert meaning.setdefault(word, concept) == concept


def test_a_paraphrase_says_the_synonym_in_english_and_the_concept_in_french():
    ask = Ask("paraphrase", ("wheat", "soil", "Kenya"), synonym="wheat")
    assert phrase(ask, "english", random.Random(2)).text.split()[-5:] == ["cereal", "and", "soil", "in", "kenya"]
    assert phrase(ask, "french", random.Random(2)).text.split()[-5:] == ["blé", "et", "sol", "en", "kenya"]


def test_a_family_is_of_near_twins():
    family = make_family(random.Random(5), ["report"] * 4)
    assert all(len(page.facts ^ family[0].facts) <= 6 for page in family)
    assert len({page.facts for page in family}) == 4


def test_drawing_depends_on_the_seed_alone():
    page = make_corpus(random.Random(3), LAYOUTS, 8)[5]
    again = dataclasses.replace(page)
    assert render(page, random.Random(7)).image.tobytes() == render(again, random.Random(7)).image.tobytes()
    assert render(page, random.Random(7)).image.tobytes() != render(page, random.Random(8)).image.tobytes()


@pytest.mark.slow
def test_all_kinds_and_languages_are_asked():
    asked = {(query.ask.kind, query.language) for _, recipe in recipes() for query in build(recipe).queries}
    assert asked == {(kind, language) for kind in KINDS for language in LANGUAGES}
