"""Boards with codecs: ranks among rows that one codec stores, the best at the same bytes, one page a method."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.evaluation.same_bytes import BEST, PRUNING, STORING, fits
from leaderboard.answers import answer
from leaderboard.columns import columns_of
from leaderboard.gather import Gathered
from leaderboard.methods import method_pages
from leaderboard.plot import plots
from leaderboard.results import result_page, result_path
from leaderboard.site import build
from leaderboard.views import View, make_views
from pruners.core.budget import UNPRUNED
from tests.leaderboard import synthetic

QUERIES = 60
FULL = 196 * 256


def alone(codec: str, quality: float, seed: int, part: float) -> tuple[dict, object]:
    """A codec by itself: all vectors are kept."""
    record, frame = synthetic.stored("full", codec, quality, seed, part, queries=QUERIES)
    record["cells"] = [cell for cell in record["cells"] if cell["budget"] in (0.2, 1.0)]
    for cell in record["cells"]:
        if cell["budget"] == 0.2:
            cell |= {"budget": UNPRUNED, "realised": 1.0, "bytes_per_page": FULL * part, "vectors_per_page": 196}
    frame = frame[frame["budget"].isin((0.2, 1.0))].replace({"budget": {0.2: UNPRUNED}})
    return record, frame


@pytest.fixture(scope="module")
def entries() -> list:
    return synthetic.entries(
        [
            synthetic.measured("kcenter", 0.7, 1, queries=QUERIES),
            synthetic.measured("sap", 0.5, 2, queries=QUERIES),
            synthetic.stored("kcenter", "int8", 0.7, 1, 0.5, queries=QUERIES),
            synthetic.stored("sap", "int8", 0.85, 6, 0.5, queries=QUERIES),
            synthetic.measured("oracle", 1.0, 5, queries=QUERIES),
            alone("binary", 0.6, 4, 1 / 16),
        ]
    )


@pytest.fixture(scope="module")
def view(entries: list) -> View:
    return make_views(entries)[0]


def test_ranks_are_among_rows_that_one_codec_stores(view: View) -> None:
    ranks = {line.label: line.rows[0.1].rank for line in view.lines if 0.1 in line.rows}
    assert ranks == {"kcenter": 1, "sap": 2, "sap | int8": 1, "kcenter | int8": 2, "oracle": None}
    overall = {line.label: line.rows[0.1].overall for line in view.lines if 0.1 in line.rows}
    assert overall == ranks
    assert view.codecs == ("float16", "binary", "int8")
    assert [line.codec for line, _ in view.listed(0.1)] == ["float16"] * 3 + ["int8"] * 2


def test_the_best_in_a_share_of_the_bytes_by_hand(view: View) -> None:
    at = {same.share: same for same in view.same_bytes}
    assert [same.bytes for same in view.same_bytes] == [share * FULL for share in (0.01, 0.02, 0.05, 0.10)]
    assert at[0.01].best == {}  # 2.5 % is the least: int8 at 5 %
    assert at[0.02].best == {}
    named = {way: (fit.label, fit.budget) for way, fit in at[0.10].best.items()}
    assert named == {BEST: ("sap | int8", 0.2), PRUNING: ("kcenter", 0.1), STORING: ("full | binary", UNPRUNED)}
    small = {way: (fit.label, fit.budget) for way, fit in at[0.05].best.items()}
    assert small == {BEST: ("sap | int8", 0.1), PRUNING: ("kcenter", 0.05)}  # a codec alone takes 6.25 %


def test_a_budget_that_is_rounded_up_still_fits() -> None:
    assert fits(10 * 256, 0.05 * FULL)  # 5 % of 196 vectors are 10, which is 5.1 %
    assert not fits(11 * 256, 0.05 * FULL)


def test_who_is_tied_is_a_matter_of_the_difference(entries: list) -> None:
    twin = synthetic.entry(*synthetic.measured("twin", 0.85, 6, queries=QUERIES), "recomputed")  # as sap | int8, larger
    found = make_views([*entries, twin])[0]
    same = next(one for one in found.same_bytes if one.share == 0.10)
    assert same.best[BEST].label == "sap | int8"
    assert "twin" not in [fit.label for fit in same.tied]  # at these bytes it is at 10 %, and behind
    again = synthetic.entry(*synthetic.stored("twin", "int8", 0.85, 6, 0.5, queries=QUERIES), "recomputed")
    found = make_views([*entries, again])[0]
    same = next(one for one in found.same_bytes if one.share == 0.10)
    assert [fit.label for fit in same.tied] == ["twin | int8"]


def test_what_the_front_page_says_is_by_bytes(view: View) -> None:
    found = answer(view)
    assert found is not None
    assert (found.line.label, found.budget, found.share) == ("sap | int8", 0.2, 0.1)


def test_a_method_has_one_page_and_its_codecs_are_variants(view: View, entries: list, tmp_path: Path) -> None:
    assert [page.name for page in method_pages([view])] == ["full", "kcenter", "oracle", "sap"]
    sap = view.by_label["sap"]
    assert result_path(view, sap) == "result/minidocs--nano/sap.html"  # as it was before there were codecs
    assert result_path(view, view.by_label["sap | int8"]) == "result/minidocs--nano/sap--int8.html"
    assert [line.label for line in result_page(view, sap).codecs] == ["sap | int8"]
    assert "codec" in [column.key for column in columns_of(view)]
    site = build(Gathered(entries), tmp_path / "site").folder
    board = (site / "board/minidocs--nano.html").read_text(encoding="utf-8")
    assert 'data-codecs="float16 / binary / int8"' in board
    assert "Budget all vectors" in board
    assert "nothing is that small" in board
    (facts,) = json.loads((site / "site.json").read_text(encoding="utf-8"))["views"]
    assert facts["codecs"] == ["float16", "binary", "int8"]
    tenth = facts["same_bytes"][-1]
    assert tenth["best"][BEST]["label"] == "sap | int8"
    rows = json.loads((site / facts["rows"][0]).read_text(encoding="utf-8"))
    assert {row["codec"] for row in rows} == {"float16", "binary", "int8"}


def test_a_board_without_codecs_has_neither_column_nor_choice(tmp_path: Path) -> None:
    only = make_views(synthetic.entries([synthetic.measured("sap", 0.9, 1, queries=10)]))[0]
    assert "codec" not in [column.key for column in columns_of(only)]
    site = build(Gathered(synthetic.entries([synthetic.measured("sap", 0.9, 1, queries=10)])), tmp_path / "s").folder
    assert "data-codecs" not in (site / "board/minidocs--nano.html").read_text(encoding="utf-8")


def test_the_front_runs_over_codecs(view: View) -> None:
    name, (wide, _) = next(plots(view))
    assert name == "bytes.retention"
    coloured = {series.name for series in wide.series if series.colour is not None}
    assert "sap | int8" in coloured
    assert "sap" not in coloured
