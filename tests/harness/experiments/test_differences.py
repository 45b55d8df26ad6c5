"""Where the paper printed a figure for a backbone, it stands beside ours.

A toy bears ColPali's name and depth, and four data sets bear ViDoRe v2's names. Their own figures mean nothing; which
printed figure stands beside which does.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "evaluation"))
from toy import BACKBONE, write_data_set

from harness.experiments.lab import Lab, Settings
from harness.experiments.registry import find
from harness.experiments.run import run_experiments
from harness.progress import quiet

V2 = ("Vidore2ESGReports", "Vidore2EconomicsReports", "Vidore2BioMedicalLectures", "Vidore2ESGReportsHL")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    folder = tmp_path_factory.mktemp("colpali")
    for i, name in enumerate(V2):
        write_data_set(folder / "pages" / f"{name}Retrieval", range(8 * i, 8 * i + 8), queries=8)
    write_data_set(folder / "calibration", range(100, 120), queries=20)
    named = BACKBONE.replace('Card("toy", "none", "1", 3', 'Card("colpali", "none", "1", 18').replace(
        "else 3,", "else 18,"
    )
    assert named.count("18") == 2
    (folder / "named.py").write_text(named)
    places = {"benchmark": str(folder / "pages"), "calibration": str(folder / "calibration")}
    small = {"pairs": 20, "trials": 1, "lambdas": (0.0,), "timed_queries": 4}
    settings = Settings(backbone=str(folder / "named.py"), **places, **small)
    return Lab(settings, folder / "stores", folder / "out", 1, quiet)


def rows_of(lab: Lab, name: str) -> list[dict]:
    (done,) = run_experiments(lab, [find(name)], again=True)
    assert done.outcome is not None
    return [dict(row) for row in done.outcome.rows]


def only(rows: list[dict], **wanted) -> dict:
    (row,) = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    return row


@pytest.mark.slow
def test_the_main_table_has_the_papers_cells_and_averages_beside_ours(lab: Lab) -> None:
    rows = rows_of(lab, "main-table")
    average = only(rows, data_set="average", method="sap", budget=0.1)
    assert average["paper"] == 90.38
    assert average["difference"] == pytest.approx(average["retention"] - 90.38)
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
            {"statistics": "plain"},
            {"paper_realised": 0.148, "paper_docpruner": 76.3, "paper_sap": 91.5},
        ),
        ("v2v-ablation", {"budget": 0.05}, {"paper_visual_rows": 0.8169, "paper_all_rows": 0.8209}),
        ("trained-comparison", {"method": "Light-ColPali", "factor": 9}, {"retention": 97.8, "source": "reported"}),
        ("storage-retrieval", {"engine": "torch, exact", "budget": 0.1}, {"paper_v100_size_mib": 74.9}),
    ],
)
def test_printed_figures_stand_beside_ours(lab: Lab, name: str, where: dict, printed: dict) -> None:
    row = only(rows_of(lab, name), **where)
    assert {key: row[key] for key in printed} == printed
    assert "difference" in row or name in ("trained-comparison", "storage-retrieval")


@pytest.mark.slow
def test_the_window_is_compared_with_the_papers(lab: Lab) -> None:
    (done,) = run_experiments(lab, [find("layer-curve")], again=True)
    assert done.outcome is not None
    assert done.outcome.facts["paper"] == {"l_star": 15, "window": "11-14", "snap": "60-80"}
    assert done.outcome.facts["same_window_as_paper"] == (done.outcome.facts["window"] == "11-14")
