"""Averages in MTEB's order, by hand and on the figures that the SAP paper printed."""

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import harness
from harness.metrics.results_table import benchmark_mean, benchmark_retention, data_set_mean, retention

PAPER = json.loads((Path(harness.__file__).parent / "paper/sap_paper.json").read_text(encoding="utf-8"))


def cells(rows: list[dict]) -> dict[tuple, list[dict]]:
    found = defaultdict(list)
    for row in rows:
        found[row["model"], row["benchmark"], row["method"], row["gamma"]].append(row)
    return found


def test_the_papers_504_cells_give_its_72_averages() -> None:
    per_data_set, averages = cells(PAPER["per_dataset"]), cells(PAPER["averages"])
    assert sum(map(len, per_data_set.values())) == 504
    assert len(averages) == 72
    for cell, (printed,) in averages.items():
        # the printed retention of a data set stands for its pruned NDCG, in units in which the full one is 100
        kept = [row["ndcg_at_5_retention_pct"] for row in per_data_set[cell]]
        ours = benchmark_retention(kept, [100.0] * len(kept))
        assert ours == pytest.approx(printed["ndcg_at_5_retention_pct"], abs=0.02), cell
        for figure in ("ndcg_at_5", "score_retention"):  # these are printed with two digits
            mean = benchmark_mean([row[figure] for row in per_data_set[cell]])
            assert mean == pytest.approx(printed[figure], abs=0.0101), (cell, figure)


def test_the_ratio_of_means_would_not_give_them() -> None:
    """Why the order matters: full scores of 0.2 and 1.0, of which half and all is kept."""
    assert benchmark_retention([0.1, 1.0], [0.2, 1.0]) == 75
    assert retention(np.mean([0.1, 1.0]), np.mean([0.2, 1.0])) == pytest.approx(91.67, abs=0.01)


def test_languages_are_averaged_within_a_data_set_first() -> None:
    assert benchmark_mean([data_set_mean([0.2, 0.4]), data_set_mean([0.9])]) == pytest.approx(0.6)


def test_where_the_full_model_finds_nothing_retention_is_unknown() -> None:
    assert np.isnan(retention(0.5, 0.0))
    np.testing.assert_array_equal(retention([[1.0, 2.0]], [[4.0]]), [[25.0, 50.0]])
