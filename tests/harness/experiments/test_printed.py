"""The paper's figures beside ours: looked up by our names, and only where they mean the same."""

import numpy as np
import pytest

from harness import paper
from harness.experiments import printed
from harness.experiments.correlation import PAPER_POINTS
from harness.experiments.gaps import NINE, gaps, nine_windows, printed_gaps, snap
from harness.experiments.probes import drop_factor
from harness.experiments.workbench import group_of
from pruners import Window


def test_every_printed_cell_is_found_by_the_names_of_mteb_and_ours() -> None:
    found = {}
    for backbone, model in paper.MODELS.items():
        for task in printed.DATA_SETS:
            for method in ("sap", "random", "docpruner", "agglomerative"):
                for gamma in (0.05, 0.1, 0.2):
                    cell = printed.cell(backbone, task, method, gamma)
                    assert cell is not None, (backbone, task, method, gamma)
                    found[model, cell["dataset"], cell["method"], gamma] = cell
    assert len(found) == 504
    assert printed.cell("colpali", "VidoreArxivQARetrieval", "docpruner", 0.2)["ndcg_at_5_retention_pct"] == 93.82


def test_other_backbones_methods_and_budgets_have_no_printed_cell() -> None:
    assert printed.cell("nano", "VidoreArxivQARetrieval", "sap", 0.1) is None
    assert printed.cell("colpali", "minidocs-v1/charts", "sap", 0.1) is None
    assert printed.cell("colpali", "VidoreArxivQARetrieval", "kcenter", 0.1) is None
    assert printed.cell("colpali", "VidoreArxivQARetrieval", "sap", 0.3) is None


def test_an_average_is_only_compared_if_it_is_over_the_whole_benchmark() -> None:
    row = {"benchmark": "vidore-v2", "method": "sap", "budget": 0.1, "data_sets": 4}
    assert printed.average("colpali", row)["ndcg_at_5_retention_pct"] == 90.38
    assert printed.average("colpali", {**row, "data_sets": 3}) is None
    assert printed.average("colpali", {**row, "benchmark": "minidocs-v2"}) is None


def test_a_difference_is_ours_minus_the_papers() -> None:
    assert printed.beside(91.0, 90.5) == {"paper": 90.5, "difference": 0.5}
    assert printed.beside(91.0, None) == {}


@pytest.mark.parametrize(
    ("task", "group"),
    [
        ("VidoreArxivQARetrieval", "vidore-v1"),
        ("Vidore2ESGReportsHLRetrieval", "vidore-v2"),
        ("minidocs-v1/charts", "minidocs-v1"),
        ("charts", "my pages"),
    ],
)
def test_data_sets_are_averaged_within_their_benchmark(task: str, group: str) -> None:
    assert group_of(task, "my pages") == group


def test_sliding_windows_are_a_fifth_of_the_depth_in_whole_layers() -> None:
    assert nine_windows(18)["60-80"] == Window(10, 14)  # ⌊10.8⌋, ⌊14.4⌋
    assert nine_windows(36)["70-90"] == Window(25, 32)
    assert nine_windows(28)["0-20"] == Window(0, 5)
    assert nine_windows(3)["0-20"] == Window(0, 1), "never empty"
    assert list(nine_windows(40).values())[-1] == Window(32, 40)


def test_the_papers_gaps_come_out_of_its_own_window_table() -> None:
    """Table `layer_instantiation` says that both are computed from the nine windows at γ = 0.10."""
    for backbone in paper.MODELS:
        tables = [r for r in paper.of_model("window_ablation", backbone) if r["gamma"] == 0.1]
        retention = {r["benchmark"]: r["ndcg_at_5_retention_pct"] for r in tables if r["benchmark"] != "mean"}
        (said,) = paper.of_model("sr_guided_windows", backbone)
        ours = gaps(retention, said["snap"])
        assert ours["gap_mean"] == pytest.approx(said["gap_mean"], abs=0.051), backbone
        assert ours["gap_worst"] == pytest.approx(said["gap_worst"], abs=1e-9), backbone
        beside = printed_gaps(backbone, {"vidore-v1": 10, "vidore-v2": 4}, ours)
        assert beside["paper_gap_worst"] == said["gap_worst"]
        assert beside["difference_gap_worst"] == pytest.approx(0)
    assert printed_gaps("colpali", {"vidore-v2": 4}, ours) == {}, "the paper's are over both benchmarks"
    assert printed_gaps("nano", {"vidore-v1": 10, "vidore-v2": 4}, ours) == {}


def test_gaps_by_hand() -> None:
    """On the mean the first is best; on one benchmark the second is 4 better, on the other it is best."""
    one, other = dict.fromkeys(NINE, 50.0), dict.fromkeys(NINE, 50.0)
    one |= {"0-20": 90.0, "10-30": 94.0}
    other |= {"0-20": 80.0, "10-30": 70.0}
    assert gaps({"a": one, "b": other}, "0-20") == {"gap_mean": 0.0, "gap_worst": -4.0}
    assert gaps({"a": one, "b": other}, "10-30") == {"gap_mean": -3.0, "gap_worst": -10.0}


def test_the_papers_drop_factors_are_three_to_eight() -> None:
    factors = [drop_factor(r["fine_tuned_drop"], r["base_drop"]) for r in paper.printed()["base_probe"]]
    assert [round(factor, 1) for factor in factors] == [2.9, 8.0, 2.9, 6.2]
    assert drop_factor(0.05, 0.0) is None
    assert drop_factor(0.05, -0.01) is None, "a base that rises has no drop to be a multiple of"


def test_the_papers_own_cells_beside_the_trained_method_are_those_of_its_main_table() -> None:
    for row in paper.printed()["trained_comparison_sap"]:
        for table in paper.printed()["averages"]:
            same = ("model", "benchmark", "gamma")
            if table["method"] == "sap" and all(table[key] == row[key] for key in same):
                assert row["ndcg_at_5_retention_pct"] == pytest.approx(table["ndcg_at_5_retention_pct"], abs=0.051)
                assert row["ndcg_at_5"] == table["ndcg_at_5"]


def test_the_papers_correlation_is_that_of_its_printed_cells_over_all_backbones() -> None:
    cells = paper.printed()["per_dataset"]
    both = ([cell[key] for cell in cells] for key in ("score_retention", "ndcg_at_5_retention_pct"))
    assert np.corrcoef(*both)[0, 1] == pytest.approx(paper.printed()["sr_ndcg_pearson"], abs=0.005)
    assert {cell["method"] for cell in cells} == {printed.METHODS[method] for method in PAPER_POINTS}


def test_the_papers_windows_snap_as_it_says() -> None:
    for row in paper.printed()["sr_guided_windows"]:
        first, last = row["window"]
        assert snap(Window(first, last + 1), row["layers"]) == row["snap"], row["model"]
    assert snap(Window(6, 8), 8) == "80-100", "between two starts the end decides"
