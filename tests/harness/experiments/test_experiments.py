"""Every experiment from end to end: on the toy retriever what can be checked by hand, on the embedded one all."""

import csv
import json
import math
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))
from reading_figures import complaints

import harness.evaluation.scores
from harness.bench import capture
from harness.calibration.calibrate import calibrate
from harness.calibration.data import calibration_data_set
from harness.calibration.window_files import window_file
from harness.cli import app
from harness.experiments.gaps import NINE
from harness.experiments.registry import EXPERIMENTS, find
from harness.experiments.run import run_experiments
from harness.experiments.workbench import ExperimentSettings, Workbench
from harness.progress import quiet
from pruners import PruneBoardError, parse, prune


def lab_of(world, **settings) -> Workbench:
    small = {"pairs": 20, "sizes": (5, 10, 99), "seeds": 2, "trials": 2, "timed_pages": 4, "timed_queries": 8}
    places = {"backbone": world.backbone, "benchmark": world.benchmark, "calibration": world.calibration}
    return Workbench(
        ExperimentSettings(**{**places, **small, **settings}), world.folder / "stores", world.folder / "out", 1, quiet
    )


@pytest.fixture(scope="module")
def toy_lab(toy_world) -> Workbench:
    return lab_of(toy_world, lambdas=(0.0, 1.0))


def outcome(workbench: Workbench, name: str):
    (done,) = run_experiments(workbench, [find(name)], again=True)
    assert done.outcome is not None
    return done.outcome


def test_every_experiment_names_what_it_stands_for_and_can_be_loaded() -> None:
    assert len(EXPERIMENTS) == 18
    for experiment in EXPERIMENTS.values():
        assert any(word in experiment.stands_for for word in ("Table", "Figure"))
        assert callable(experiment.load())
    result = CliRunner().invoke(app, ["experiment", "--list", "--json"])
    assert [row["name"] for row in json.loads(result.stdout)] == list(EXPERIMENTS)
    with pytest.raises(PruneBoardError, match=r"'layer-curv'; did you mean layer-curve"):
        find("layer-curv")


@pytest.mark.slow
def test_nine_windows_at_three_budgets_take_one_pass_over_the_pages(toy_world, monkeypatch) -> None:
    workbench = lab_of(toy_world, seed=7)
    pages = Counter()
    score = harness.evaluation.scores.score_page

    def counted(vectors, results, queries):
        pages["scored"] += 1
        pages["cells"] = sum(len(result.counts) for result in results)
        return score(vectors, results, queries)

    monkeypatch.setattr(harness.evaluation.scores, "score_page", counted)
    found = outcome(workbench, "window-ablation")
    assert 30 <= pages["scored"] < 40, "each of 30 pages once, and some of them for the estimate of the time"
    assert pages["cells"] == 3 * len({row["layers"] for row in found.rows})


@pytest.mark.slow
def test_a_window_of_the_ablation_equals_an_evaluation_of_that_window_by_hand(toy_lab: Workbench) -> None:
    rows = [r for r in outcome(toy_lab, "window-ablation").rows if r["window"] == "80-100" and r["budget"] == 0.2]
    store, data_set = toy_lab.evaluated["plain"], toy_lab.benchmark.data_sets[0]
    (row,) = rows
    pruner = parse(f"sap(layers={row['layers']})")
    kept = [page.vectors[prune(pruner, page, [0.2]).kept(0)].double() for page in store.pages()]
    whole = [page.vectors.double() for page in store.pages()]
    figures = []
    for vectors in (kept, whole):
        gains = []
        for q, query in enumerate(store.query_ids):
            scores = [float((store.query(q).double() @ v.T).amax(1).sum()) for v in vectors]
            (gold,) = data_set.qrels[query]
            rank = sum(s > scores[data_set.page_ids.index(gold)] for s in scores)
            gains.append(1 / math.log2(rank + 2) if rank < 5 else 0.0)
        figures.append(np.mean(gains))
    cells = toy_lab.evaluate([str(pruner)], (0.2,))
    (cell,) = [c for c in cells.data_sets if c["data_set"] == "plain"]
    assert cell["retention@5"] == pytest.approx(100 * figures[0] / figures[1], abs=1e-6)
    assert cells.averages[0]["retention"] == pytest.approx(row["retention"])


@pytest.mark.slow
def test_only_a_selected_window_is_called_sr_guided(toy_world, toy_lab: Workbench) -> None:
    selected = outcome(toy_lab, "window-ablation")
    assert [r["layers"] for r in selected.rows if r["window"] == "SR-guided"] == 3 * [str(toy_lab.bound.window)]
    by_hand = outcome(lab_of(toy_world, window="1-2"), "window-ablation")
    assert [r["layers"] for r in by_hand.rows if r["window"] == "given"] == 3 * ["1-2"]
    assert not [r for r in by_hand.rows if "SR-guided" in r["window"]]


@pytest.mark.slow
def test_the_gaps_are_those_of_the_tables_own_rows(toy_lab: Workbench) -> None:
    found = outcome(toy_lab, "window-ablation")
    rows = {r["window"]: r["retention"] for r in found.rows if r["budget"] == 0.1 and r["benchmark"] == "pages"}
    behind = rows[found.facts["snap"]] - max(rows[name] for name in NINE)
    assert found.facts["gap_mean"] == found.facts["gap_worst"] == behind, "with one benchmark both are the same"
    assert outcome(toy_lab, "layer-curve").facts["gap_mean"] == behind


@pytest.mark.slow
def test_widths_end_where_the_window_ends_and_every_width_is_evaluated(toy_lab: Workbench) -> None:
    rows = outcome(toy_lab, "width-robustness").rows
    stop = toy_lab.bound.window.stop
    assert [row["k"] for row in rows] == [1, 2, 3]
    assert {row["layers"].split("-")[-1] for row in rows} == {str(stop - 1)}
    assert [row["default"] for row in rows] == [True, False, False], "k = ⌈0.2 · 3⌉"


@pytest.mark.slow
def test_native_rows_come_with_sap_at_the_same_ratio(toy_lab: Workbench) -> None:
    found = outcome(toy_lab, "docpruner-native").rows
    rows = [row for row in found if row["operating_point"] == "native"]
    assert [(row["lambda"], row["statistics"]) for row in rows] == [
        (0.0, "plain"),
        (1.0, "plain"),
        (0.0, "IQR-clipped"),
        (1.0, "IQR-clipped"),
    ]
    for row in rows:
        assert 0 <= row["sap_realised"] - row["realised"] < 0.08, "a page rounds up by less than one of its vectors"
        low, high = row["docpruner_minus_sap_interval"]
        assert low <= row["docpruner_minus_sap"] <= high


@pytest.mark.slow
def test_native_docpruner_stands_beside_docpruner_calibrated_to_the_same_ratio(toy_lab: Workbench) -> None:
    rows = outcome(toy_lab, "docpruner-native").rows
    native = next(row for row in rows if row["operating_point"] == "native" and row["statistics"] == "plain")
    assert native["matched_budget"] == pytest.approx(native["realised"], rel=0.005)
    (cell,) = toy_lab.evaluate(["docpruner"], (native["matched_budget"],)).averages
    assert native["matched"] == pytest.approx(cell["retention"])
    (matched,) = [row for row in rows if row["operating_point"] == "matched"]
    (cell,) = toy_lab.evaluate(["docpruner"], (0.05,)).averages
    assert (matched["matched_budget"], matched["docpruner"]) == (0.05, pytest.approx(cell["retention"]))


def test_calibration_sizes_that_are_not_there_are_named(toy_lab: Workbench) -> None:
    found = outcome(toy_lab, "calibration-robustness")
    assert {row["pairs"] for row in found.rows} == {5, 10}
    assert len({row["distribution"] for row in found.rows}) == 2
    assert any("calibration has 30 pairs: N = 99 left out" in note for note in found.notes)


def test_files_hold_the_same_table_and_are_made_once(toy_lab: Workbench) -> None:
    (done,) = run_experiments(toy_lab, [find("v2v-ablation")], again=True)
    record = json.loads(done.files["json"].read_text())
    assert record["stands_for"].startswith("SAP paper, Table")
    assert record["reproduces"] == find("v2v-ablation").reproduces
    assert record["cannot"] == find("v2v-ablation").cannot
    assert record["backbone"]["name"] == "toy"
    assert set(record["benchmark"]) == {"plain", "tongues"}
    table = list(csv.DictReader(done.files["csv"].open()))
    assert [float(row["visual_rows"]) for row in table] == [row["visual_rows"] for row in record["rows"]]
    assert "visual_minus_all_interval_low" in table[0]
    assert done.files["svg"].read_bytes().startswith(b"<?xml")
    assert "toy on calibration" in done.files["svg"].read_text(), "the figure says whose it is, and on what"
    assert done.files["png"].read_bytes().startswith(b"\x89PNG")
    before = {ending: path.read_bytes() for ending, path in done.files.items()}
    (again,) = run_experiments(toy_lab, [find("v2v-ablation")])
    assert again.outcome is None, "it was finished"
    (third,) = run_experiments(toy_lab, [find("v2v-ablation")], again=True)
    for ending in ("csv", "svg", "png"):
        assert third.files[ending].read_bytes() == before[ending], "the same data, the same bytes"


@pytest.mark.slow
def test_an_interrupted_experiment_is_not_taken_for_a_finished_one(toy_lab: Workbench) -> None:
    (done,) = run_experiments(toy_lab, [find("v2v-ablation")], again=True)
    done.files["json"].unlink()  # it is written last
    (again,) = run_experiments(toy_lab, [find("v2v-ablation")])
    assert again.outcome is not None


def test_a_window_saved_meanwhile_makes_another_folder(toy_world) -> None:
    """Else one folder held SAP's figures of two windows: those made before `harness calibrate`, and after it."""
    places = {"pairs": 20, "trials": 1}
    before = lab_of(toy_world, **places)
    (first,) = run_experiments(before, [find("ndcg-cutoffs")])
    calibrate(before.backbone, calibration_data_set(toy_world.calibration), before.stores, rho=1.0, progress=quiet)
    try:
        after = lab_of(toy_world, **places)
        (second,) = run_experiments(after, [find("ndcg-cutoffs")])
    finally:
        window_file(before.stores, before.backbone).unlink()
    assert str(after.bound.window) != str(before.bound.window), "else this test says nothing"
    assert first.files["json"].parent != second.files["json"].parent


def test_an_experiment_made_by_other_code_is_made_again(toy_lab: Workbench) -> None:
    (done,) = run_experiments(toy_lab, [find("v2v-ablation")], again=True)
    record = json.loads(done.files["json"].read_text())
    record["measured_with"]["experiments"] = "sha256-0"
    done.files["json"].write_text(json.dumps(record))
    (again,) = run_experiments(toy_lab, [find("v2v-ablation")])
    assert again.outcome is not None
    (third,) = run_experiments(toy_lab, [find("v2v-ablation")])
    assert third.outcome is None


def test_an_edited_method_of_ones_own_goes_into_another_folder(toy_world, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("from pruners import scorer\n\n@scorer('own')\ndef own(page):\n    return page.vectors[:, 0]\n")
    before = lab_of(toy_world, pruner=str(own)).folder
    assert lab_of(toy_world, pruner=str(own)).folder == before
    own.write_text(own.read_text().replace("return ", "return -"))
    assert lab_of(toy_world, pruner=str(own)).folder != before


def test_other_settings_go_into_another_folder(toy_world, toy_lab: Workbench) -> None:
    assert lab_of(toy_world, pairs=19).folder != toy_lab.folder
    assert lab_of(toy_world, lambdas=(0.0, 1.0)).folder == toy_lab.folder


@pytest.mark.slow
def test_of_several_the_one_that_cannot_be_run_is_named_and_the_others_go_on(toy_lab: Workbench) -> None:
    first, second = run_experiments(toy_lab, [find("base-probe"), find("v2v-ablation")], again=True)
    assert "needs a colpali-engine retriever, not toy" in str(first.failure)
    assert second.outcome is not None
    with pytest.raises(PruneBoardError, match="not toy"):
        run_experiments(toy_lab, [find("base-probe")])


def test_numbers_are_read_from_the_command_line() -> None:
    result = CliRunner().invoke(app, ["experiment", "layer-curve", "--sizes", "5,x"])
    assert isinstance(result.exception, PruneBoardError)
    assert "--sizes takes numbers" in str(result.exception)


MEASURED_ON_RUNS = ("main-table", "budget-curve", "ndcg-cutoffs", "sap-adaptive", "sr-ndcg", "trained-comparison")


@pytest.mark.slow
@pytest.mark.parametrize("on_runs", [True, False])
def test_every_experiment_runs_on_the_embedded_retriever_and_its_figure_can_be_read(
    nano_world, on_runs: bool, monkeypatch
) -> None:
    # Memory is measured in eight processes that take seconds to start each; they have a test of their own (capture).
    measured = {"seconds": 1.0, "peak_mb": 300.0, "extra_mb": 20.0}
    monkeypatch.setattr(capture, "_in_own_process", lambda decoder, way, tokens, threads: measured)
    workbench = lab_of(nano_world, lambdas=(0.0,), tokens=(64, 128))
    chosen = [experiment for name, experiment in EXPERIMENTS.items() if (name in MEASURED_ON_RUNS) == on_runs]
    for done in run_experiments(workbench, chosen):
        assert done.failure is None, (done.experiment.name, done.failure)
        assert done.outcome is not None
        assert done.outcome.rows, done.experiment.name
        assert complaints(done.outcome.draw) == [], done.experiment.name
        assert all(path.stat().st_size for path in done.files.values())
        text = done.files["svg"].read_text()
        assert "nano" in text, "every figure names its backbone"
        ids = ("renormalize", "sap_adaptive", "token_pooling", "docpruner<", "minidocs-v")
        assert not [known for known in ids if known in text], done.experiment.name
        assert not any("difference" in row for row in done.outcome.rows), "the paper did not evaluate nano"
