"""What a board advises: rows of mixed status, and the same answer as the rule gives over all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import harness
from harness.advice.advise import advise
from harness.advice.rule import Asked, choose
from harness.submissions.folder import FOLDER
from leaderboard.advice import board_advice, view_basis, view_candidates
from leaderboard.views import View, make_views
from tests.leaderboard import synthetic


def view_of(*entries) -> View:
    return make_views(entries)[0]


def one(name: str, quality: float, seed: int, status: str = "recomputed", **more):
    return synthetic.entry(*synthetic.measured(name, quality, seed, queries=40, **more), status)


def test_only_what_was_measured_and_competes_is_advised() -> None:
    paper = synthetic.paper_submissions()[0][0]
    nano = {
        "benchmark": one("x", 1, 1).submission.benchmark.model_dump(mode="json"),
        "backbone": {"name": "nano", "checkpoint": "n"},
    }
    cells = [{"data_set": "minidocs-v1/tables", "budget": b, "ndcg": {"5": 0.9}, "retention": 99.9} for b in (0.05,)]
    reported = synthetic.entry({**paper, **nano, "cells": cells}, None, "reported")
    view = view_of(
        reported,
        one("oracle", 1.0, 1),
        one("mine", 1.0, 2, "unpinned"),
        one("trained", 1.0, 3, method__track="trained"),
        one("sap", 0.999, 4),
    )
    found = advise(view_candidates(view), view_basis(view), Asked(90, 1e6), None)
    assert found.chosen is not None
    assert found.chosen.candidate.text == "sap"
    assert found.statuses == {"recomputed": 10, "reported": 1, "unpinned": 3}
    assert "mixed: only measured ones are advised" in str(found)
    barred = {o.candidate.text: o.candidate.barred.partition(":")[0] for o in found.others if o.candidate.barred}
    paper_name = reported.submission.method.name
    assert barred == {paper_name: "reported", "oracle": "diagnostic", "mine": "unpinned", "trained": "trained"}


def test_a_row_that_lacks_a_data_set_is_not_advised() -> None:
    record, frame = synthetic.measured("tome", 1.0, 5, queries=10)
    record["cells"] = [cell for cell in record["cells"] if cell["data_set"] != "minidocs-v1/charts"]
    view = view_of(synthetic.entry(record, frame, "recomputed"), one("sap", 0.5, 4))
    rows = [row for row in view_candidates(view) if row.text == "tome"]
    assert {row.barred for row in rows} == {"data sets are missing: 6/7"}


def test_the_front_of_a_board_answers_like_all_its_rows() -> None:
    view = view_of(*synthetic.entries(synthetic.nano_submissions(10, most=12)))
    board = board_advice(view)
    assert board is not None
    rows, few = list(view_candidates(view)), [row for row, _ in board.front]
    assert len(few) < len(rows) / 3
    for keep in range(60, 101):
        for gb in (1, 3, 5, 8, 11, 60):
            asked = Asked(keep, 1e6, max_gb=gb)
            assert choose(few, asked) == choose(rows, asked)
    small, large = board.sizes
    assert choose(few, Asked(0.1, 1e6, max_gb=small)) == few[0]  # the ends of the slider are enough for them
    assert choose(few, Asked(few[-1].low or 0, 1e6, max_gb=large)) == few[-1]


def test_a_board_of_printed_figures_advises_nothing() -> None:
    view = view_of(*synthetic.entries(synthetic.paper_submissions()[:1]))
    assert board_advice(view) is None


def test_codecs_are_rows_of_their_own() -> None:
    view = view_of(
        one("kmeans", 0.99, 1),
        synthetic.entry(*synthetic.stored("kmeans", "int8", 0.99, 1, 0.5, queries=40), "recomputed"),
    )
    rows = {(row.text, row.budget): row for row in view_candidates(view)}
    half = rows["kmeans | int8", 0.1]
    assert half.codec == "int8"
    assert half.own_bytes == 0.5 * (rows["kmeans", 0.1].own_bytes or 0)
    keep = rows["kmeans", 0.2].low or 0.0
    best = choose(rows.values(), Asked(min(keep, half.low or 0.0), 1e6))
    assert best is not None
    assert best.codec == "int8"


def test_what_all_pages_share_is_not_multiplied() -> None:
    record, frame = synthetic.measured("hpc", 0.9, 1, queries=10)
    alone = {cell["budget"]: cell["bytes_per_page"] for cell in record["cells"]}
    synthetic.share(record, 10**6)
    view = view_of(synthetic.entry(record, frame, "recomputed"))
    (line,) = view.lines
    for budget, row in line.rows.items():
        assert row.bytes is not None
        assert row.bytes > alone[budget] + 1000
        assert row.index_bytes(1e6) == pytest.approx(alone[budget] * 1e6 + 1e6)
    assert line.full.index_bytes(1e6) == pytest.approx(alone[1.0] * 1e6)
    rows = {one.budget: one for one in view_candidates(view) if one.text == "hpc"}
    assert {one.shared_bytes for one in rows.values()} == {10**6}
    assert rows[0.1].own_bytes == pytest.approx(alone[0.1])


@pytest.mark.slow
def test_the_board_that_is_shipped(tmp_path: Path) -> None:
    found = harness.advise(board="r-doc-pdf/minilm", keep=80, submissions=FOLDER)
    assert found.chosen is not None
    assert (found.chosen.candidate.low or 0) >= 80
    cheaper = [o for o in found.others if (o.candidate.own_bytes or 0) < (found.chosen.candidate.own_bytes or 0)]
    assert cheaper
    assert all(o.faults for o in cheaper)
    assert found.basis.kind == "text tokens"
    reported = harness.advise(board="vidore-v2/colqwen2", submissions=FOLDER)
    assert reported.chosen is None
    assert {o.faults[0].kind for o in reported.others} == {"barred"}
