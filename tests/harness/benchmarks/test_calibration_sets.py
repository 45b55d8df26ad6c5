"""Calibration sets: drawn by seed, gold pairs only, disjoint from what is evaluated, or refused."""

from __future__ import annotations

import harness.compat  # noqa: F401

import json

import pytest
from typer.testing import CliRunner

from harness.benchmarks.data_set import read_folder
from harness.cli import app
from tests.harness.benchmarks.local_tasks import write_layout
from tests.harness.evaluation.toy import write_backbone


def evaluate(*args: object):
    return CliRunner().invoke(app, ["evaluate", *map(str, args), "--workers", "1"], catch_exceptions=False)


def test_pages_of_one_s_own_are_held_out_to_calibrate_on_and_the_run_says_so(tmp_path):
    folder = write_layout(tmp_path / "mine", pages=60, queries=24)
    backbone = write_backbone(tmp_path)
    common = ["--backbone", backbone, "--benchmark", folder, "--store", tmp_path / "stores", "--budgets", "0.2"]
    common += ["--pruner", "sap", "--pruner", "docpruner", "--out", tmp_path / "run"]
    refused = CliRunner().invoke(app, ["evaluate", *map(str, common)])
    assert "--calibration held-out" in str(refused.exception)
    done = evaluate(*common, "--calibration", "held-out")
    assert done.exit_code == 0, done.output
    assert "held out to calibrate on (20%, seed 42)" in done.output.replace("\n", " ")
    assert "none of which is evaluated" in done.output
    assert f'benchmark = "{folder}#rest"' in (tmp_path / "run" / "config.toml").read_text()
    stores = json.loads((tmp_path / "run" / "stores.json").read_text())
    calibration = json.loads((tmp_path / "run" / "calibration.json").read_text())
    assert list(stores) == ["mine-rest"]
    assert calibration["benchmark"] == "mine-held-out"
    assert "none of which is evaluated" in (tmp_path / "run" / "log.txt").read_text()
    assert stores["mine-rest"]["pages"] + 12 == 60
    assert "held out to calibrate on" in (tmp_path / "run" / "log.txt").read_text()


@pytest.mark.slow
def test_the_second_distribution_takes_pairs_of_five_tasks_and_is_refused_on_their_pages(tmp_path, monkeypatch):
    from harness.benchmarks import benchmark, calibration_sets

    tasks = {
        f"{name}Retrieval": read_folder(write_layout(tmp_path / f"{name}Retrieval", pages=30, queries=20, start=40 * i))
        for i, name in enumerate(calibration_sets.MIX)
    }
    monkeypatch.setattr(calibration_sets, "load_task", lambda name: (tasks[name],))
    monkeypatch.setattr(calibration_sets, "MIX_PAIRS", 8)
    (mix,) = benchmark.load_benchmark("vidore-v1-mix").data_sets
    assert sum(map(len, mix.qrels.values())) == 5 * 8
    assert {page.partition("/")[0] for page in mix.page_ids} == set(tasks)
    command = ["--backbone", write_backbone(tmp_path), "--store", tmp_path / "stores", "--budgets", "0.2"]
    command += ["--pruner", "docpruner", "--calibration", "vidore-v1-mix", "--out", tmp_path / "run"]
    shared = CliRunner().invoke(
        app, ["evaluate", *map(str, command), "--benchmark", str(tmp_path / "VidoreDocVQARetrieval")]
    )
    assert "calibration set vidore-v1-mix and VidoreDocVQARetrieval share" in str(shared.exception)


@pytest.mark.parametrize("name", ["colpali-train", "vidore-v1-mix"])
def test_calibration_sets_are_listed_by_name(name):
    listed = json.loads(CliRunner().invoke(app, ["list", "benchmarks", "--json"]).stdout)
    assert name in {row["benchmark"] for row in listed}
