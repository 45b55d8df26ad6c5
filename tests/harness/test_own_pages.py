"""PDFs of one's own, from import to figures: with a text encoder, and with nano, which says what it cannot do."""

from __future__ import annotations

import json
import random

import pytest
from typer.testing import CliRunner

from harness.benchmarks.data_set import read_folder
from harness.cli import app
from tests.harness.importing.tiny_pdf import write_pdf

WORDS = [
    "pump",
    "valve",
    "engine",
    "water",
    "pressure",
    "lamp",
    "cable",
    "switch",
    "filter",
    "sensor",
    "oil",
    "gauge",
    "bolt",
    "motor",
    "fan",
    "heater",
]


@pytest.fixture(scope="module")
def benchmarks(tmp_path_factory):
    """`pages` and `others`: two manuals of different pages, imported."""
    root = tmp_path_factory.mktemp("own")
    for name, seed in (("pages", 1), ("others", 2)):
        rng = random.Random(seed)
        pages, outline = [], []
        for page in range(10):
            heading = f"{' '.join(rng.sample(WORDS, 2))} {seed}"
            outline.append((0, f"{page + 1} {heading.capitalize()}", page))
            pages.append([f"{page + 1} {heading.capitalize()}", *(" ".join(rng.sample(WORDS, 6)) for _ in range(5))])
        write_pdf(root / "pdfs" / f"{name}.pdf", pages, outline)
        arguments = ["import", str(root / "pdfs" / f"{name}.pdf"), "--queries", "outline", "--out", str(root / name)]
        assert CliRunner().invoke(app, arguments).exit_code == 0
    return root


def evaluate(root, tmp_path, *options):
    paths = {"benchmark": root / "pages", "calibration": root / "others", "store": tmp_path / "stores"}
    named = [part for name, path in paths.items() for part in (f"--{name}", str(path))]
    return CliRunner().invoke(app, ["evaluate", *named, "--out", str(tmp_path / "run"), *options])


@pytest.mark.slow
def test_every_applicable_method_runs_on_the_text_of_ones_own_pages(benchmarks, tmp_path):
    result = evaluate(benchmarks, tmp_path, "--backbone", "minilm", "--budgets", "0.2", "--workers", "1", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    methods = {row["method"] for row in found["rows"]}
    assert {"sap", "eos", "random", "token_pooling", "docpruner", "prune_then_merge", "voronoi"} <= methods
    assert not methods & {"ink", "uniform_grid", "row_pool"}, "pages of text have neither ink nor a grid"
    assert "left out, because minilm lacks what they need" in result.stderr
    assert "ink" in result.stderr
    assert found["failures"] == {}
    full = next(row for row in found["rows"] if row["budget"] == 1.0)
    assert full["ndcg@5"] > 0.8, "headings stand on their pages"
    submissions = tmp_path / "submissions"
    submit = ["submit", str(tmp_path / "run"), "--submitter", "me", "--method", "sap", "--out", str(submissions)]
    assert CliRunner().invoke(app, submit).exit_code == 0
    (path,) = submissions.glob("pages/minilm/sap/*.json")
    submission = json.loads(path.read_text())
    assert submission["backbone"]["kind"] == "text tokens"
    assert submission["benchmark"]["data_sets"][0]["page_texts"] == read_folder(benchmarks / "pages").content["texts"]
    assert CliRunner().invoke(app, ["validate", str(submissions)]).exit_code == 0


@pytest.mark.slow
def test_a_method_that_was_named_and_cannot_run_fails(benchmarks, tmp_path):
    options = ("--backbone", "minilm", "--budgets", "0.2", "--pruner", "ink", "--pruner", "random", "--workers", "1")
    result = evaluate(benchmarks, tmp_path, *options)
    assert result.exit_code == 1
    assert "ink" in result.stderr


@pytest.mark.slow
def test_nano_says_before_running_that_it_cannot_read_these_pages(benchmarks, tmp_path):
    options = ("--backbone", "nano", "--budgets", "0.2", "--pruner", "random", "--pruner", "sap", "--workers", "1")
    result = evaluate(benchmarks, tmp_path, *options)
    assert result.exit_code == 0, result.output
    assert result.stderr.index("retrieves badly") < result.stderr.index("prune, score")
