"""calibration-robustness: draws from a pool that is larger than they are, and agreement counted as the paper does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from harness.benchmarks.calibration_sets import colpali_train
from harness.calibration.calibrate import sr_guided
from harness.encode import encode
from harness.experiments.calibrations import calibration_robustness
from harness.experiments.workbench import ExperimentSettings, Workbench
from harness.progress import quiet
from pruners import PruneBoardError
from tests.harness.benchmarks.training_files import write_training_corpus


def lab_of(world, **settings) -> Workbench:
    places = {"backbone": world.backbone, "benchmark": world.benchmark, "calibration": world.calibration}
    return Workbench(
        ExperimentSettings(**{**places, **settings}), world.folder / "stores", world.folder / "out", 1, quiet
    )


def test_a_draw_of_all_there_is_is_not_reported_as_agreement_of_seeds(toy_world):
    found = calibration_robustness(lab_of(toy_world, sizes=(5, 20, 30, 99), seeds=3))
    assert {row["pairs"] for row in found.rows if row["distribution"] == "calibration"} == {5, 20}
    left = [note for note in found.notes if note.startswith("calibration")]
    assert "calibration has 30 pairs: N = 30, 99 left out, since every seed would draw the same pairs" in left
    assert any("N = 20 out of 30 have more than half of their pairs in common" in note for note in left)
    with pytest.raises(PruneBoardError, match="no draw can be made"):
        calibration_robustness(lab_of(toy_world, sizes=(99,)))


def test_agreement_is_counted_of_snapped_windows_and_of_layers(toy_world):
    found = calibration_robustness(lab_of(toy_world, sizes=(5,), seeds=5))
    for entry in found.facts["agreement"]:
        here = [row for row in found.rows if row["distribution"] == entry["distribution"]]
        for what, agree in (("snap", "agree_snapped"), ("window", "agree_exact")):
            assert entry[agree] == f"{max(Counter(row[what] for row in here).values())}/5"


def test_a_draw_of_the_training_corpus_is_that_of_colpali_train_by_the_same_seed(toy_world, tmp_path: Path):
    """Each window is that of a calibration on `colpali_train(N, seed)`; N may be larger than the default set's 500."""
    folder = write_training_corpus(tmp_path / "corpus", rows=140)
    workbench = lab_of(toy_world, calibration=f"colpali-train(path={folder})", sizes=(10, 60, 105, 1000), seeds=2)
    found = calibration_robustness(workbench)
    rows = [row for row in found.rows if row["distribution"] == "colpali-train"]
    assert {(row["pairs"], row["pool"]) for row in rows} == {(10, 105), (60, 105)}
    for row in rows:
        data_set = colpali_train(folder, pairs=row["pairs"], seed=row["seed"])
        store = encode(workbench.backbone, data_set, workbench.stores, progress=quiet)
        by_hand = sr_guided(data_set, store, workbench.backbone, pairs=1000, progress=quiet)
        assert (row["window"], row["l_star"]) == (by_hand.window, by_hand.boundary)
    assert any("colpali-train has 105 pairs: N = 105, 1000 left out" in note for note in found.notes)
