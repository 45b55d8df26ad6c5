"""What single pages say: comparisons, methods, backbones, plots, and what a hostile submission can do to them."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.submissions.report import CheckedSubmission
from harness.submissions.tables import scores_of
from leaderboard import compare, heat, words
from leaderboard.backbones import layer_curve
from leaderboard.gather import Gathered
from leaderboard.methods import command, facts, load_words
from leaderboard.pages import environment
from leaderboard.plot import pareto, plots
from leaderboard.site import build
from leaderboard.views import make_views
from pruners.core.catalog import catalogue
from tests.leaderboard import synthetic
from tests.leaderboard.synthetic import entry, measured

HOSTILE = (
    '"><script>window.hacked=1</script><img src=x onerror=window.hacked=1>',
    "javascript:window.hacked=1",
    "{{ 7*7 }}{% raw %}${7*7}",
    "\u202egnp.exe\u2066\u200f",
    "</script><script>window.hacked=1</script><!--",
    "' onmouseover='window.hacked=1",
    "=HYPERLINK(1)",
    "../../x",
    "x" * 10_000,
)


def test_the_files_of_pairs_hold_every_interval_and_turn_round() -> None:
    (view,) = make_views(synthetic.entries(synthetic.nano_submissions(15, most=4)))
    pairs = compare.make_pairs(view)
    files = json.loads(json.dumps(dict(compare.bounds_files(pairs))))
    gaps = pairs.gaps()
    assert gaps is not None
    seen = 0
    for a in range(4):
        for b in range(a + 1, 4):
            for at, budget in enumerate(view.budgets):
                there, back = pairs.differences(a, b, budget), pairs.differences(b, a, budget)
                for which, (exact, turned) in enumerate(zip(there, back, strict=True)):
                    low, high = files[str(a)][b - a - 1][at][which]
                    assert exact.interval is not None
                    assert turned.interval is not None
                    assert exact.value == pytest.approx(exact.interval.value)
                    assert (low, high) == pytest.approx((exact.interval.low, exact.interval.high), abs=0.0051)
                    assert (turned.interval.low, turned.interval.high) == (-exact.interval.high, -exact.interval.low)
                    seen += 1
                light = view.light(gaps)
                kept = light.difference(light.lines[b], light.lines[a], budget)
                assert kept == back[0].interval
    assert seen == 6 * 3 * 8


def test_papers_figures_are_compared_without_intervals() -> None:
    view = make_views(synthetic.entries(synthetic.paper_submissions()))[0]
    pairs = compare.make_pairs(view)
    assert pairs.paired == 0
    assert not list(compare.bounds_files(pairs))
    first, second = view.lines[:2]
    (overall, *_) = pairs.differences(0, 1, 0.1)
    assert overall.value == pytest.approx(first.rows[0.1].retention - second.rows[0.1].retention)


def test_every_built_in_method_has_words_and_a_formula() -> None:
    for name in catalogue():
        found = facts(name)
        assert found is not None, name
        assert found.words, name
        assert found.formula, name


def test_the_command_repeats_what_was_measured_and_is_safe_to_paste() -> None:
    good = entry(*measured("sap", 0.9, 1, method__expression="sap(layers=2-3)"))
    assert command(good, [0.05, 0.1]) == (
        "harness evaluate --backbone nano --benchmark minidocs --pruner 'sap(layers=2-3)' --budgets 0.05,0.1"
        " --out runs/again"
    )
    assert load_words(good) == 'import harness\n\nmethod = harness.load_run("runs/again").method("sap(layers=2-3)")'
    for bad in ("sap; rm -rf ~", "sap$(id)", "sap`id`", "sap'", "mine.py:sap", "unknown", 'sap("x")'):
        assert command(entry(*measured("sap", 0.9, 1, method__expression=bad)), [0.1]) is None, bad
    paper = entry(*measured("sap", 0.9, 1, method__expression="SAP"), status="reported")
    assert "--pruner sap " in command(paper, [0.1])  # a paper's name of a method is none of ours; its own name here is
    assert command(entry(*measured("light-colpali", 0.9, 1), status="reported"), [0.1]) is None


def test_a_layer_curve_is_drawn_only_from_a_sound_one() -> None:
    curve = layer_curve({"window": synthetic.WINDOW})
    assert curve is not None
    assert [layer for layer, _, inside in curve.rows if inside] == [2, 3]
    good = synthetic.WINDOW
    for bad in (None, 3, {}, good | {"curve": "x"}, good | {"curve": [1, "a"]}, good | {"window": "4-9"},
                good | {"median": None}, good | {"window": "²-3"}, good | {"curve": [1e300, 0.1]}):  # fmt: skip
        assert layer_curve({"window": bad}) is None


def test_the_pareto_front_by_hand() -> None:
    assert pareto([(0.1, 90), (0.2, 80), (0.05, 70), (0.1, 95), (0.3, 99), (0.2, 95)]) == [
        (0.05, 70),
        (0.1, 95),
        (0.3, 99),
    ]


def test_a_plot_has_every_figure_of_its_view_on_every_pair_of_axes() -> None:
    (view,) = make_views(synthetic.entries(synthetic.nano_submissions(15, most=5)))
    found = dict(plots(view))
    assert list(found) == [f"{x}.{y}" for x in ("bytes", "vectors", "kept", "ms") for y in ("retention", "ndcg5", "sr")]
    for wide, narrow in found.values():
        for drawn in (wide, narrow):
            assert {series.name for series in drawn.series} == {line.label for line in view.lines}
            for series in drawn.series:
                (line,) = [line for line in view.lines if line.label == series.name]
                for point, row in zip(series.points, line.rows.values(), strict=True):
                    budget, x, y = map(float, point.values.split(",")[:3])
                    assert budget == row.budget
                    assert x == pytest.approx(drawn.x.value(row), rel=1e-5)
                    assert y == pytest.approx(drawn.y.value(row), rel=1e-5)
                    assert drawn.size.left <= point.x <= drawn.size.width - drawn.size.right
                    assert drawn.size.top <= point.y <= drawn.size.height - drawn.size.bottom


@pytest.mark.slow
def test_the_front_is_labelled_and_nothing_covers_anything() -> None:
    """A hundred methods: those on the front have a colour and a label, and no two labels meet."""
    entries = [entry(*measured(f"m{i}", 0.5 + i / 210, i, queries=5), "recomputed") for i in range(100)]
    for i, one in enumerate(entries):  # sizes of their own, so that the front has several methods
        cells = tuple(
            c.model_copy(update={"bytes_per_page": (c.bytes_per_page or 1) * (1 + i / 50)})
            for c in one.submission.cells
        )
        entries[i] = replace(one, submission=one.submission.model_copy(update={"cells": cells}))
    (view,) = make_views(entries)
    for drawn in dict(plots(view))["bytes.retention"]:
        coloured = {series.name for series in drawn.series if series.colour is not None}
        assert 3 < len(coloured) < 60
        assert len(drawn.series) == 100
        assert {label.text for label in drawn.labels} <= coloured
        assert len(drawn.labels) >= 3
        boxes = [
            (x := label.x - (drawn.size.letter * len(label.text) if label.end else 0), label.y - 11,
             x + drawn.size.letter * len(label.text), label.y + 3)
            for label in drawn.labels
        ]  # fmt: skip
        for i, a in enumerate(boxes):
            assert a[0] >= 0
            assert a[2] <= drawn.size.width
            for b in boxes[i + 1 :]:
                assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_steps_of_the_heat_map() -> None:
    assert [heat.step(v) for v in (None, 0.0, 49.9, 50.0, 99.9, 100.0, 100.04, 100.1)] == [None, 0, 0, 1, 6, 6, 6, 7]
    assert len(heat.legend()) == len(heat.STEPS) + 1


def test_file_names_can_neither_leave_their_folder_nor_meet() -> None:
    names = ["sap", "Sap", "../../x", "..", "", "a/b", "a_b", "x" * 10_000, "x" * 9_999, "con\u202e", ".git"]
    made = [words.file_name(name) for name in names]
    assert made[0] == "sap"
    assert len({name.lower() for name in made}) == len(names)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9._=-]{0,99}", name) for name in made)


def test_links_lead_to_the_web_or_nowhere() -> None:
    assert "<a " in words.web_link("https://example.org/a?b=c&d")
    for bad in (
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "data:text/html,x",
        'https://x" onclick="y',
        "//x",
        " https://x",
    ):
        assert "<a" not in words.web_link(bad), bad
        assert '"' not in str(words.web_link(bad)).replace("&#34;", "")


def test_autoescape_is_on_for_every_template() -> None:
    env = environment(None)
    assert env.autoescape is True
    for name in env.list_templates():
        source = env.loader.get_source(env, name)[0]
        assert "|safe" not in source.replace(" ", ""), name
        assert "autoescape" not in source, name


def attributes(page: str) -> list[tuple[str, str, str]]:
    """(tag, attribute, value) as a browser would read them."""
    found: list[tuple[str, str, str]] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list) -> None:
            found.extend((tag, name, value or "") for name, value in attrs)

    Reader().feed(page)
    return found


def hostile(word: str, i: int) -> CheckedSubmission:
    """A submission with a hostile text wherever text can be, also where the schema would refuse it."""
    record, frame = measured("sap" if i % 2 else "kmeans", 0.9, i, queries=6)
    good = entry(record, frame, "recomputed")
    s = good.submission
    origin = s.origin.model_copy(update={"submitter": word, "note": word, "paper": word, "code": word})
    method = s.method.model_copy(
        update={
            "name": word, "title": word, "expression": word, "version": word, "file_hash": word,
            "signals": (word,), "parameters": {word: word}, "calibrated": {"window": {"curve": word}, word: word},
        }
    )  # fmt: skip
    backbone = s.backbone.model_copy(update={"name": word, "checkpoint": word, "query_template": word, "dtype": word})
    sets = tuple(d.model_copy(update={"name": f"{word}{d.name}"}) for d in s.benchmark.data_sets)
    benchmark = s.benchmark.model_copy(update={"name": word, "data_sets": sets})
    cells = tuple(c.model_copy(update={"data_set": f"{word}{c.data_set}"}) for c in s.cells)
    scores = scores_of(frame.assign(data_set=word + frame["data_set"])) if i == 0 else None  # once is enough, and quick
    update = {
        "id": word,
        "origin": origin,
        "method": method,
        "backbone": backbone,
        "benchmark": benchmark,
        "cells": cells,
    }
    return CheckedSubmission(Path(word), s.model_copy(update=update), scores, "recomputed", (word,))


def test_hostile_submissions_stay_text_and_stay_inside(tmp_path: Path) -> None:
    built = build(Gathered([hostile(word, i) for i, word in enumerate(HOSTILE)]), tmp_path / "deep" / "er" / "site")
    assert [p.name for p in tmp_path.iterdir()] == ["deep"]
    assert [p.name for p in (tmp_path / "deep" / "er").iterdir()] == ["site"]
    for path in built.folder.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        assert "<script>window" not in page, path
        for tag, name, value in attributes(page):
            assert not name.startswith("on"), (path, tag, name)
            assert tag != "img" or value in ("", "favicon.svg", "../favicon.svg"), (path, value)
            assert name not in ("href", "src") or re.match(r"[\w.#/=%&+-]*$", value), (path, value)
        assert len(re.findall(r"</script>", page)) == len(re.findall(r"<script", page)), path
        assert "49" not in re.findall(r"<h1>(.*?)</h1>", page, re.S)[0], path
    for path in (*built.folder.glob("plot/*.js"), *built.folder.glob("board/*.js")):  # these hold HTML
        assert "<script>window" not in path.read_text(encoding="utf-8").replace("\\", ""), path
    ElementTree.parse(built.folder / "feed.xml")
