"""From a run to the board: submitted and checked, or as a preview of what is not submitted yet."""

import json
from pathlib import Path

import pytest
from spoiling import Spoiled
from typer.testing import CliRunner

from harness.cli import app
from harness.evaluation.evaluate import Evaluation
from harness.metrics.uncertainty import Interval
from leaderboard.gather import PREVIEW, gather
from leaderboard.groups import AgainKind
from leaderboard.pictures import Pictures
from leaderboard.site import build
from leaderboard.views import make_views


def leaderboard(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["leaderboard", *map(str, words)])
    return result.exit_code, result.output


def test_the_board_shows_a_runs_own_figures(evaluation: Evaluation, submitted: Path) -> None:
    """Retention, interval and rank of every row are those that `harness evaluate` printed."""
    found = gather(submitted, [])
    (view,) = make_views(found.load(), found.benchmarks)
    assert {line.entry.status for line in view.lines} == {"recomputed"}
    printed = {(row["method"], row["budget"]): row for row in evaluation.rows if row["budget"] < 1}
    shown = {(line.method.name, budget): row for line in view.lines for budget, row in line.rows.items()}
    assert len(shown) == len(printed) > 3
    for key, row in shown.items():
        theirs = printed[key]
        assert row.retention is not None
        assert isinstance(row.interval, Interval)
        assert abs(row.retention - theirs["retention"]) < 1e-6
        low, high = theirs["retention_interval"]  # queries stand in another order, so other ones are drawn
        assert abs(row.interval.low - low) < 0.03 * (high - low)
        assert abs(row.interval.high - high) < 0.03 * (high - low)
        assert row.overall == theirs["rank"]
        assert row.score_retention is not None
        assert abs(row.score_retention - theirs["score_retention"]) < 0.02  # by language here, by data set there


def test_a_run_that_is_submitted_too_adds_no_row_and_no_rank(evaluation: Evaluation, submitted: Path) -> None:
    """What `make demo` shows: every method once, with the run beside it, which differs by nothing."""
    alone, both = gather(submitted, []), gather(submitted, [evaluation.run.folder])
    (before,), (after,) = (make_views(found.load(), found.benchmarks) for found in (alone, both))
    assert len(both.load()) == 2 * len(before.lines)
    ranks = [{line.label: [row.rank for row in line.rows.values()] for line in v.lines} for v in (before, after)]
    assert ranks[0] == ranks[1]
    for line in after.lines:
        (again,) = line.others(AgainKind.local)
        assert again.differences.keys() == line.rows.keys()
        assert all(abs(gap.value) < 1e-6 for gap in again.differences.values())


def test_a_run_can_be_looked_at_before_it_is_submitted(evaluation: Evaluation, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    run = evaluation.run.folder
    status, text = leaderboard(
        "--submissions", tmp_path / "none", "--runs", run.parent, "--out", tmp_path / "site", "--json"
    )
    assert status == 0, text
    told = json.loads(text[text.index("{") :])
    assert told["submissions"] == len({row["method"] for row in evaluation.rows if row["budget"] < 1})
    pages = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "site" / "method").iterdir())
    assert PREVIEW in pages
    assert "local" in pages


def test_wrong_use_is_one_line(tmp_path: Path) -> None:
    for words, said in (
        (("--submissions", tmp_path / "no"), "there is no folder"),
        (("--submissions", tmp_path, "--runs", tmp_path), "is no run folder and holds none"),
        (("--submissions", tmp_path, "--base-url", "ftp://x"), "--base-url is the address"),
    ):
        result = CliRunner().invoke(app, ["leaderboard", "--out", str(tmp_path / "site"), *map(str, words)])
        assert said in str(result.exception), words
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("kind", ["folder", "link to a device", "link to nothing"])
def test_what_is_no_file_but_bears_a_submissions_name_breaks_no_build(
    spoiled: Spoiled, tmp_path: Path, kind: str
) -> None:
    spoiled.only("sap", "random")
    path = spoiled.path("random")
    path.unlink()
    if kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "link to a device" else tmp_path / "nothing")
    built = build(gather(spoiled.root, []), tmp_path / "site")
    assert built.submissions == 1
    assert {problem.file for problem in built.left_out} == {path}


def test_what_is_left_out_is_told_without_commands_to_the_terminal(
    spoiled: Spoiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder's name may hold what a terminal would obey, and what our own printing would take for markup."""
    spoiled.only("sap", "random")
    home = spoiled.path("random").parent
    home.rename(home.with_name("\x1b[31m[bold]x\u202e"))
    out = ["--out", str(tmp_path / "site"), "--submissions", str(spoiled.root)]
    monkeypatch.setattr("leaderboard.site.draw", lambda methods, progress: Pictures())  # half a minute
    result = CliRunner().invoke(app, ["leaderboard", *out])
    assert result.exit_code == 0, result.exception
    told = result.output[result.output.index("left out") :]
    assert "[bold]x" in told
    assert "\\u202e" in told
    assert "\u202e" not in told
    assert "\x1b[31m" not in told
