"""A gold pair whose full score is not above 0 has no ratio: it is left out, counted, and the submission is valid.

The toy retriever gets a dark page in each data set (all numbers negative) and a bright query (all positive), for which
both its own page and the dark one are relevant. So the bright query has one pair with a ratio and one without.
"""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from spoiling import Spoiled, pin
from toy import BACKBONE, write_data_set
from typer.testing import CliRunner

from harness.cli import app
from harness.evaluation.config import Config
from harness.evaluation.evaluate import RunPaths, evaluate
from harness.progress import quiet
from harness.submissions.validation import validate

DARK = {"plain": 24, "tongues": 54}
PAGE = "    vectors, rng = draw(number)\n"
QUERY = "    return torch.from_numpy(chosen"


def write_backbone(folder: Path) -> Path:
    dark = f"    vectors = -abs(vectors) if number in {tuple(DARK.values())} else vectors\n"
    bright = "    chosen = abs(chosen) if which == 3 else chosen\n"
    path = folder / "toy_backbone.py"
    path.write_text(BACKBONE.replace(PAGE, PAGE + dark).replace(QUERY, bright + QUERY))
    return path


@pytest.fixture(scope="module")
def submitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("left-out")
    write_data_set(folder / "pages" / "plain", range(25))
    write_data_set(folder / "pages" / "tongues", range(30, 55), queries=12, languages=("english", "french"))
    for name, page in DARK.items():
        path = folder / "pages" / name / "qrels" / "test-00000-of-00001.parquet"
        qrels = pd.read_parquet(path)
        bright = qrels[qrels["query-id"].str.match(r"q3(?!\d)")].assign(**{"corpus-id": f"page-{page}"})
        pd.concat([qrels, bright]).to_parquet(path, index=False)
    config = Config(
        backbone=str(write_backbone(folder)),
        benchmark=str(folder / "pages"),
        pruners=("eos", "random"),
        budgets=(0.1, 0.2),
        trials=2,
    )
    run = evaluate(config, RunPaths(folder / "stores", folder / "run", 1), quiet).run
    options = ["--submitter", "the toy team", "--date", "2026-11-16", "--out", str(folder / "submitted")]
    result = CliRunner().invoke(app, ["submit", str(run.folder), *options])
    assert result.exit_code == 0, result.output
    pin(folder / "submitted", "eos")
    return folder / "submitted"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["eos", "random"])
def test_the_submission_is_accepted_as_it_is(submitted: Path, method: str) -> None:
    report = validate(submitted)
    assert [problem for problem in report.problems if problem.level == "error"] == []
    assert [entry.status for entry in report.entries] == ["recomputed"] * 2
    (path,) = (submitted / "pages" / "toy" / method).glob("*.json")
    stated = json.loads(path.read_text())["cells"]
    (found,) = [entry.submission.cells for entry in report.entries if entry.submission.method.name == method]
    assert [cell.score_retention for cell in found] == [cell.get("score_retention") for cell in stated]
    assert [cell.pairs_left_out for cell in found] == [1 if cell["data_set"] == "plain" else 2 for cell in stated]


def test_the_means_are_those_of_the_pairs_that_have_a_ratio(submitted: Path) -> None:
    """Every query has one such pair, so the mean over pairs is the mean over queries. A data set in several languages
    counts the pairs left out for all of them together, so no language can be said to have a mean over its pairs.
    """
    (path,) = (submitted / "pages" / "toy" / "random").glob("*.json")
    rows = pd.read_parquet(path.with_suffix(".parquet"))
    for cell in json.loads(path.read_text())["cells"]:
        here = rows[(rows["data_set"] == cell["data_set"]) & (rows["budget"] == cell["budget"])]
        if cell["data_set"] == "plain":
            assert len(here) == 20 * (1 if cell["budget"] == 1 else 2)
            assert cell["score_retention"] == pytest.approx(here["score_retention"].mean(), abs=1e-6)
        else:
            assert "score_retention" not in cell
            assert 0 < cell["score_retention_micro"] <= 1


def test_without_a_pair_left_out_another_mean_is_an_error(submitted: Path, tmp_path: Path) -> None:
    """The control: it is the number of pairs left out that excuses the figure from being computed again."""
    spoiled = Spoiled(Path(shutil.copytree(submitted, tmp_path / "copy")))
    spoiled.json("eos", lambda s: [cell.pop("pairs_left_out") for cell in s["cells"]], forge_id=True)
    wrong = {error.field for error in spoiled.errors()}
    assert "cells[1] (plain at 0.1).score_retention" in wrong
