"""From a run to submissions: what they say is what the run measured."""

import json
import shutil
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import harness
from harness.cli import app
from harness.evaluation.evaluate import Evaluation
from harness.evaluation.run_folder import RunFolder
from harness.submissions.folder import find_submissions, read_submission
from harness.submissions.run_facts import FinishedRun
from harness.submissions.schema import Origin, Track
from harness.submissions.submit import WantedMethods, new_submissions, write, write_benchmark
from harness.submissions.validation import validate
from pruners import PruneBoardError

ORIGIN = Origin(submitter="the toy team", submitted=date(2026, 11, 16))


def test_every_method_of_a_run_becomes_a_submission_with_its_track(submitted: Path) -> None:
    found = {read_submission(path).method.name: read_submission(path) for path in find_submissions(submitted)}
    assert sorted(found) == ["contrast", "docpruner", "kmeans", "random", "row_pool", "sap"]
    assert found["kmeans"].method.track is Track.merging
    assert found["sap"].method.track is Track.subset
    assert found["docpruner"].method.adaptive
    assert found["row_pool"].method.snapped
    assert found["docpruner"].method.composition == "adaptive(eos)"
    assert sorted(found["docpruner"].method.calibrated) == ["on", "thresholds"]
    assert found["sap"].method.calibrated["on"]["content"]["corpus"].startswith(("xxh3-", "sha256-"))
    assert found["random"].cells[-1].trials == 2


def test_averages_of_the_cells_are_the_figures_that_the_run_printed(submitted: Path, evaluation: Evaluation) -> None:
    printed = {(row["method"], row["budget"]): row for row in evaluation.rows}
    for entry in validate(submitted).entries:
        for budget in (1.0, 0.1, 0.2):
            cells = [cell for cell in entry.submission.cells if cell.budget == budget]
            by_data_set = {c.data_set: [] for c in cells}
            for cell in cells:
                by_data_set[cell.data_set].append(cell.ndcg["5"])
            mean = np.mean([np.mean(values) for values in by_data_set.values()])
            row = printed["full" if budget == 1 else entry.submission.method.expression.split(":")[-1], budget]
            assert mean == pytest.approx(row["ndcg@5"], abs=1e-12)
            sizes = {c.data_set: c.vectors_per_page for c in cells}
            assert np.mean(list(sizes.values())) == pytest.approx(row["vectors_per_page"], abs=1e-12)


def test_submitting_twice_writes_the_same_bytes_and_then_nothing(evaluation: Evaluation, tmp_path: Path) -> None:
    run = FinishedRun(evaluation.run.folder)
    contents = []
    for name in ("first", "second"):
        folder = tmp_path / name
        write_benchmark(run, folder)
        assert all(
            write(made, folder)[1] for made in new_submissions(run, WantedMethods(ORIGIN, methods=("sap", "random")))
        )
        contents.append({p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()})
    assert contents[0] == contents[1]
    later = Origin(submitter="somebody", submitted=date(2027, 1, 1))
    assert not any(
        write(made, tmp_path / "first")[1] for made in new_submissions(run, WantedMethods(later, methods=("sap",)))
    )


def test_a_method_from_a_file_is_named_by_the_files_hash_and_not_by_where_it_lies(submitted: Path) -> None:
    (path,) = (submitted / "pages" / "toy" / "contrast").glob("*.json")
    method = read_submission(path).method
    assert method.expression == "own.py:contrast"
    assert method.file_hash is not None
    assert method.version is None
    for file in submitted.rglob("*.json"):
        assert "/tmp" not in file.read_text()
        assert str(Path.home()) not in file.read_text()


def test_one_method_can_be_chosen_and_an_unknown_one_is_named(evaluation: Evaluation, tmp_path: Path) -> None:
    run = FinishedRun(evaluation.run.folder)
    (made,) = new_submissions(run, WantedMethods(ORIGIN, methods=("sap",), track=Track.trained))
    assert made.submission.method.track is Track.trained
    with pytest.raises(PruneBoardError, match="has no method 'spa'; it has sap"):
        list(new_submissions(run, WantedMethods(ORIGIN, methods=("spa",))))


def test_a_method_that_failed_on_a_data_set_is_submitted_as_partial(evaluation: Evaluation, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(evaluation.run.folder, tmp_path / "run"))
    for path in (folder / "results" / "plain").glob("sap.*"):
        path.unlink()
    run, out = FinishedRun(folder), tmp_path / "out"
    write_benchmark(run, out)
    (made,) = new_submissions(run, WantedMethods(ORIGIN, methods=("sap",)))
    write(made, out)
    (entry,) = validate(out).entries
    assert entry.coverage == {0.1: (1, 2), 0.2: (1, 2), 1.0: (1, 2)}
    assert not entry.is_complete(0.1)
    assert "1/2 at budget 0.1, 0.2, 1, so unranked: no plain" in " ".join(entry.warnings)


def test_thresholds_of_their_own_have_no_common_budget_and_are_left_out(evaluation: Evaluation, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(evaluation.run.folder, tmp_path / "run"))
    methods = json.loads((folder / "methods.json").read_text())
    methods["sap"]["own_threshold"] = True
    RunFolder(folder).write_json("methods.json", methods)
    run = FinishedRun(folder)
    assert "sap" not in run.submittable
    with pytest.raises(PruneBoardError, match="a threshold of its own keeps another ratio on every data set"):
        list(new_submissions(run, WantedMethods(ORIGIN, methods=("sap",))))


def test_new_figures_take_the_place_of_ones_own_old_ones_with_a_reason(evaluation: Evaluation, tmp_path: Path) -> None:
    folder, out = Path(shutil.copytree(evaluation.run.folder, tmp_path / "run")), tmp_path / "out"
    options = ["submit", str(folder), "--method", "sap", "--out", str(out), "--json", "--submitter"]
    (first,) = json.loads(CliRunner().invoke(app, [*options, "we"]).stdout)
    (other,) = json.loads(CliRunner().invoke(app, [*options, "they", "--reproduces", first["id"]]).stdout)
    result = RunFolder(folder).read_json("results/plain/sap.json")
    result["budgets"][0]["score_retention_micro"] -= 0.001
    RunFolder(folder).write_json("results/plain/sap.json", result)
    (second,) = json.loads(CliRunner().invoke(app, [*options, "we", "--replace", "measured by mended code"]).stdout)
    assert second["replaces"] == [first["id"]]
    assert json.loads((out / "removed.json").read_text())[first["id"]]["reason"] == "measured by mended code"
    assert sorted(path.stem for path in find_submissions(out)) == sorted([second["id"], other["id"]])
    assert not list(out.rglob(f"{first['id']}*"))


def test_an_unfinished_run_and_a_changed_benchmark_are_refused(evaluation: Evaluation, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(evaluation.run.folder, tmp_path / "run"))
    write_benchmark(FinishedRun(folder), tmp_path / "out")
    stores = json.loads((folder / "stores.json").read_text())
    stores["plain"]["content"]["qrels"] = "sha256-" + 64 * "0"
    RunFolder(folder).write_json("stores.json", stores)
    with pytest.raises(PruneBoardError, match=r"plain.qrels: .* is pinned, the run has sha256-0000"):
        write_benchmark(FinishedRun(folder), tmp_path / "out")
    (folder / "failures.json").unlink()
    with pytest.raises(PruneBoardError, match="is not finished"):
        FinishedRun(folder)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--submitter", "x", "--paper", "javascript:alert(1)"], "--paper"),
        (["--submitter", " "], "--submitter"),
        (["--submitter", "x", "--date", "soon"], "--date"),
        (["--submitter", "x", "--track", "fast"], "--track"),
    ],
)
def test_wrong_options_are_named(evaluation: Evaluation, tmp_path: Path, options: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["submit", str(evaluation.run.folder), "--out", str(tmp_path), *options])
    assert isinstance(result.exception, PruneBoardError)
    assert said in str(result.exception)
    assert not list(tmp_path.iterdir())


def test_built_in_methods_that_are_on_the_board_are_left_out_unless_named(
    evaluation: Evaluation, tmp_path: Path
) -> None:
    out, said = tmp_path / "out", []
    first = harness.submit(evaluation.run.folder, "we", out=out)
    others = harness.submit(evaluation.run.folder, "they", out=out, say=said.append)
    assert [made.method for made in others] == ["contrast"], "a method of one's own is nobody else's"
    assert "the board has them from others" in said[0]
    assert all(made.method in said[0] for made in first if made.method != "contrast")
    again = harness.submit(evaluation.run.folder, "we", out=out)
    assert [made.id for made in again] == [made.id for made in first], "one's own stay as they are"
    assert not any(made.new for made in again)
    (sap,) = [made.id for made in first if made.method == "sap"]
    named = harness.submit(evaluation.run.folder, "they", out=out, methods=["sap"], reproduces=sap)
    assert [made.method for made in named] == ["sap"]
