"""Where the paper printed a figure for a backbone, it stands beside ours.

A toy bears ColPali's name and depth, and four data sets bear ViDoRe v2's names. Their own figures mean nothing; which
printed figure stands beside which does.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "evaluation"))
from toy import BACKBONE, write_data_set

from harness.experiments.printed import SIZES
from harness.experiments.probes import printed_probe
from harness.experiments.registry import find
from harness.experiments.run import run_experiments
from harness.experiments.trained import beside_trained
from harness.experiments.workbench import ExperimentSettings, Workbench
from harness.progress import quiet

V2 = ("Vidore2ESGReports", "Vidore2EconomicsReports", "Vidore2BioMedicalLectures", "Vidore2ESGReportsHL")


@pytest.fixture(scope="module")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    return colpali_on(V2, tmp_path_factory.mktemp("colpali"))


def colpali_on(names: Sequence[str], folder: Path) -> Workbench:
    for i, name in enumerate(names):
        write_data_set(folder / "pages" / f"{name}Retrieval", range(8 * i, 8 * i + 8), queries=8)
    write_data_set(folder / "calibration", range(100, 120), queries=20)
    named = BACKBONE.replace('Card("toy", "none", "1", 3', 'Card("colpali", "none", "1", 18').replace(
        "else 3,", "else 18,"
    )
    assert named.count("18") == 2
    (folder / "named.py").write_text(named)
    places = {"benchmark": str(folder / "pages"), "calibration": str(folder / "calibration")}
    small = {"pairs": 20, "trials": 1, "lambdas": (0.0, 0.5), "timed_queries": 4}
    settings = ExperimentSettings(backbone=str(folder / "named.py"), **places, **small)
    return Workbench(settings, folder / "stores", folder / "out", 1, quiet)


def rows_of(workbench: Workbench, name: str) -> list[dict]:
    (done,) = run_experiments(workbench, [find(name)], again=True)
    assert done.outcome is not None
    return [dict(row) for row in done.outcome.rows]


def only(rows: list[dict], **wanted) -> dict:
    (row,) = [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]
    return row


@pytest.mark.slow
def test_the_main_table_has_the_papers_cells_and_averages_beside_ours(workbench: Workbench) -> None:
    rows = rows_of(workbench, "main-table")
    average = only(rows, data_set="average", method="sap", budget=0.1)
    assert average["paper"] == 90.38
    assert average["difference"] == pytest.approx(average["retention"] - 90.38)
    quoted = {"paper_score_retention": 0.89, "paper_ndcg@5": 0.50, "paper_full_ndcg@5": 0.56}
    assert {key: average[key] for key in quoted} == quoted
    assert only(rows, data_set="average", method="docpruner", budget=0.05)["paper"] == 59.52
    assert all("paper" in row for row in rows if row["method"] != "sap_adaptive")
    assert not any("paper" in row for row in rows if row["method"] == "sap_adaptive"), "it is in a table of its own"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "where", "printed"),
    [
        ("window-ablation", {"window": "60-80", "budget": 0.1}, {"paper": 90.9}),
        ("ndcg-cutoffs", {"cutoff": 100, "budget": 0.05}, {"paper": 82.3}),
        ("sap-adaptive", {"budget": 0.2}, {"paper_adaptive": 93.5, "paper_fixed": 93.4}),
        (
            "docpruner-native",
            {"statistics": "plain", "lambda": 0.0},
            {"paper_realised": 0.148, "paper_docpruner": 76.3, "paper_sap": 91.5},
        ),
        ("docpruner-native", {"statistics": "plain", "lambda": 0.5}, {"paper_docpruner": 56.4, "paper_matched": 55.4}),
        ("docpruner-native", {"operating_point": "matched"}, {"paper_docpruner": 55.4, "matched_budget": 0.05}),
        ("budget-curve", {"method": "kmeans(renormalize=false)", "budget": 0.1}, {"paper": 69.0}),
        ("v2v-ablation", {"budget": 0.05}, {"paper_visual_rows": 0.8169, "paper_all_rows": 0.8209}),
        ("trained-comparison", {"method": "Light-ColPali", "factor": 9}, {"retention": 97.8, "source": "reported"}),
        ("storage-retrieval", {"engine": "torch, exact", "budget": 0.1}, {"paper_v100_size_mib": 74.9}),
    ],
)
def test_printed_figures_stand_beside_ours(workbench: Workbench, name: str, where: dict, printed: dict) -> None:
    row = only(rows_of(workbench, name), **where)
    assert {key: row[key] for key in printed} == printed
    assert "difference" in row or name in ("trained-comparison", "storage-retrieval")


@pytest.mark.slow
def test_one_backbones_correlation_is_not_compared_with_that_of_all_of_them(tmp_path: Path) -> None:
    workbench = colpali_on(("VidoreArxivQA", V2[0]), tmp_path)
    assert set(workbench.groups) == {"vidore-v1", "vidore-v2"}, "what the paper's r is over, but for two more backbones"
    (done,) = run_experiments(workbench, [find("sr-ndcg")], again=True)
    assert done.outcome is not None
    assert not [fact for fact in done.outcome.facts if "difference" in fact or fact.startswith("paper")]
    points = [row for row in done.outcome.rows if row["in_paper"]]
    assert len(points) == done.outcome.facts["points_of_the_papers_methods"] == 2 * 4 * 3, "data sets, methods, budgets"
    by_hand = np.corrcoef(*([row[key] for row in points] for key in ("score_retention", "retention")))[0, 1]
    assert done.outcome.facts["pearson_of_the_papers_methods"] == pytest.approx(by_hand)


@pytest.mark.parametrize(
    ("name", "ours", "benchmark", "printed"),
    [
        ("colpali", 90.0, "vidore-v1", {"paper": 93.9, "difference": pytest.approx(-3.9), "paper_ndcg@5": 0.8}),
        ("colqwen2", 93.2, "vidore-v1", {"paper": 93.2, "difference": 0.0, "paper_ndcg@5": 0.82}),
        ("colpali", 90.0, "vidore-v2", {}),
    ],
)
def test_the_papers_cell_beside_a_trained_method_is_at_its_own_budget(
    name: str, ours: float, benchmark: str, printed: dict
) -> None:
    row = {"benchmark": benchmark, "data_sets": SIZES[benchmark], "method": "sap", "budget": 0.1, "retention": ours}
    assert beside_trained(name, row, 9) == printed
    assert beside_trained(name, {**row, "budget": 1 / 9}, 9) == {}, "the paper took the nearest budget it had"
    assert beside_trained(name, {**row, "method": "token_pooling"}, 9) == {}


@pytest.mark.parametrize("attention", ["fine-tuned", "base"])
def test_both_means_of_the_base_probe_are_compared(attention: str) -> None:
    row = {"budget": 0.05, "attention": attention, "in_window": 0.8, "after": 0.7, "drop": 0.1}
    within, beyond, drop = {"fine-tuned": (0.787, 0.731, 0.056), "base": (0.802, 0.796, 0.007)}[attention]
    assert printed_probe("colpali", row) == {
        "paper_in_window": within,
        "paper_after": beyond,
        "paper_drop": drop,
        "difference_in_window": pytest.approx(0.8 - within),
        "difference_after": pytest.approx(0.7 - beyond),
        "difference_drop": pytest.approx(0.1 - drop),
        "paper_drop_factor": pytest.approx(8.0),
    }
    assert printed_probe("jina-v4", row) == {}


@pytest.mark.slow
def test_the_window_is_compared_with_the_papers(workbench: Workbench) -> None:
    (done,) = run_experiments(workbench, [find("layer-curve")], again=True)
    assert done.outcome is not None
    assert done.outcome.facts["paper"] == {"l_star": 15, "window": "11-14", "snap": "60-80"}
    assert done.outcome.facts["same_window_as_paper"] == (done.outcome.facts["window"] == "11-14")
