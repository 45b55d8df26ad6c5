"""One row a method: what shares a row, which figures it shows, and that measuring again pushes nobody down."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.submissions.report import CheckedSubmission
from leaderboard.columns import columns_of
from leaderboard.groups import LOCAL, AgainKind, group
from leaderboard.views import View, make_views
from tests.leaderboard import synthetic
from tests.leaderboard.synthetic import entry, measured


def submitted(
    name: str, quality: float, seed: int, who: str = "the project", day: str = "2026-11-16"
) -> CheckedSubmission:
    return entry(*measured(name, quality, seed, origin__submitter=who, origin__submitted=day), "recomputed")


def ranks(view: View) -> dict[str, int | None]:
    return {line.label: line.rows[0.1].rank for line in view.lines}


@pytest.fixture
def board() -> list[CheckedSubmission]:
    return [
        submitted("kmeans", 0.97, 1),
        submitted("sap", 0.9, 2),
        submitted("random", 0.5, 3),
        submitted("eos", 0.7, 4),
    ]


def test_a_reproduction_shares_the_row_and_moves_no_rank(board: list[CheckedSubmission]) -> None:
    (before,) = make_views(board)
    again = submitted("sap", 0.9, 12, "somebody else", "2026-11-20")
    first = board[1]
    agreed = replace(again, status="reproduced", reproduced_by=(first.submission.id,))
    (after,) = make_views([*board, agreed])
    assert ranks(after) == ranks(before)
    (line,) = [line for line in after.lines if line.label == "sap"]
    assert line.entry.submission.id == first.submission.id
    assert (line.times, line.reproduced_by) == (2, "somebody else")
    assert [a.kind for a in line.again] == [AgainKind.reproduction]
    theirs, ours = line.again[0].rows[0.1].retention, line.rows[0.1].retention
    assert line.again[0].differences[0.1].value == pytest.approx(theirs - ours)


def test_the_latest_figures_of_the_first_submitter_are_shown(board: list[CheckedSubmission]) -> None:
    corrected = submitted("sap", 0.8, 13, "The Project", "2026-11-18")
    other = submitted("sap", 0.99, 14, "somebody else", "2026-11-19")
    (found,) = [g for g in group([*board, corrected, other]) if g.shown.submission.method.name == "sap"]
    assert found.shown is corrected
    assert {kind: e.submission.id for kind, e in found.others} == {
        AgainKind.earlier: "sap-0002",
        AgainKind.again: "sap-0014",
    }


def test_a_run_of_ones_own_is_a_difference_and_takes_no_rank(board: list[CheckedSubmission]) -> None:
    (before,) = make_views(board)
    mine = [replace(e, status=LOCAL) for e in (submitted("sap", 0.6, 21, "you"), submitted("tome", 0.999, 22, "you"))]
    (after,) = make_views([*board, *mine])
    found = ranks(after)
    assert found.pop("tome") is None  # nobody has submitted it: a row of its own, the best of all, without a rank
    assert found == ranks(before)
    (line,) = [line for line in after.lines if line.label == "sap"]
    (again,) = line.others(AgainKind.local)
    gap = again.differences[0.1]
    assert gap.value == pytest.approx(again.rows[0.1].retention - line.rows[0.1].retention)
    assert gap.low < gap.value < gap.high
    (column,) = [c for c in columns_of(after) if c.key == "local"]
    assert column.show(line, line.rows[0.1]).startswith(f"−{-gap.value:.1f} [−")
    assert "local" not in [c.key for c in columns_of(before)]


def test_other_parameters_or_another_revision_are_rows_of_their_own(board: list[CheckedSubmission]) -> None:
    record, frame = measured("sap", 0.85, 31, method__parameters={"layers": "2-3"})
    other, rows = measured("sap", 0.85, 32, backbone__revision="abc")
    (view,) = make_views([*board, entry(record, frame, "recomputed"), entry(other, rows, "recomputed")])
    assert sorted(label for label in ranks(view) if label.startswith("sap")) == [
        "sap (sap-0002)", "sap (sap-0031)", "sap (sap-0032)",
    ]  # fmt: skip


def test_a_papers_figure_stands_beside_the_measured_row_and_keeps_its_place_among_the_papers() -> None:
    printed = synthetic.entries([p for p in synthetic.paper_submissions() if p[0]["benchmark"]["name"] == "vidore-v1"])
    colpali = [e for e in printed if e.submission.backbone.name == "colpali"]
    (before,) = make_views(colpali)
    names = {"benchmark__name": "vidore-v1", "backbone__name": "colpali"}
    own = entry(*measured("sap", 0.9, 41, **names), "recomputed")
    (after,) = make_views([*colpali, own])
    (line,) = [line for line in after.lines if line.label == "sap"]
    assert line.entry is own
    assert [a.kind for a in line.again] == [AgainKind.paper]
    reported = {line.label: line.rows[0.1].overall for line in before.lines}
    assert reported.pop("sap") == 1
    # the measured submission has other data sets, so that all figures over the benchmark are partial now
    assert {line.label for line in after.lines if line.reported} == reported.keys()


def test_ranks_are_within_tracks_and_the_overall_one_is_there_too() -> None:
    (view,) = make_views([submitted("kmeans", 0.99, 1), submitted("sap", 0.8, 2), submitted("random", 0.3, 3)])
    found = {line.label: (line.rows[0.1].rank, line.rows[0.1].overall) for line in view.lines}
    assert found == {"kmeans": (1, 1), "sap": (1, 2), "random": (2, 3)}
