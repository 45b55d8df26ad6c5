"""Folders of several backbones, joined. Rows are the paper's own where it printed them: so must the joint tables be."""

import csv
import json
import shutil
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))
from printed_folders import write_folder, write_paper
from reading_figures import complaints
from test_latex import compiles

from harness import paper
from harness.cli import app
from harness.experiments.correlation import correlations
from harness.experiments.join import ITEMS, join
from harness.experiments.joint import Joint
from harness.experiments.joint_sources import read_sources
from harness.experiments.outcome import Outcome
from harness.experiments.probes import drop_factor
from harness.experiments.registry import find
from harness.experiments.run import run_experiments
from harness.experiments.windows import NINE
from harness.experiments.workbench import ExperimentSettings, Workbench
from harness.progress import quiet


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_paper(tmp_path_factory.mktemp("paper"))


@pytest.fixture(scope="module")
def joint(three: list[Path]) -> Path:
    out = three[0].parent / "joint"
    join(three, out)
    return out


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    """Two backbones that a test may change."""
    return [write_folder(tmp_path, backbone) for backbone in ("colpali", "colqwen2")]


def record(out: Path, name: str) -> dict:
    return json.loads((out / f"{name}.json").read_text())


def outcome(folders: list[Path], name: str) -> Outcome:
    """One item, without its files."""
    (item,) = [item for item in ITEMS if item.name == name]
    return item.make(Joint(read_sources(folders)[0]))


def lines(out: Path, name: str) -> list[str]:
    """The lines of a LaTeX table that hold cells."""
    return [line for line in (out / f"{name}.tex").read_text().splitlines() if line.endswith(r"\\") and "&" in line]


@pytest.mark.slow
def test_the_gaps_of_the_windows_table_are_the_papers(joint: Path) -> None:
    assert lines(joint, "windows")[1:] == [
        r"ColPali & 18 & 15 & 11--14 & 60--80\% & 15--17 & 0.0 & $-0.3$ \\",
        r"ColQwen2 & 28 & 24 & 18--23 & 60--80\% & 24--27 & 0.0 & 0.0 \\",
        r"Jina v4 & 36 & 34 & 26--33 & 70--90\% & 34--35 & 0.0 & $-0.2$ \\",
    ]
    assert [row["paper_gap_worst"] for row in record(joint, "windows")["rows"]] == [-0.3, 0.0, -0.2]


def test_table_1_is_printed_as_the_paper_prints_it(joint: Path) -> None:
    body = lines(joint, "window-ablation")[1:]
    assert body[0] == (
        r"ColPali & ViDoRe v1 & 88.2 & 91.8 & 92.6 & 93.1 & 92.7 & \textbf{94.2} & 93.9$^\dagger$ & 91.9 & 90.0 \\"
    )
    assert r"\textbf{92.4}$^\dagger$" in body[2], "the mean of ColPali"
    assert body[2].startswith(r" & \textit{Mean} & ")
    assert sum(line.count("dagger") for line in body) == 9
    assert sum(line.count("textbf") for line in body) == 9
    for row in record(joint, "window-ablation")["rows"]:
        if row["benchmark"] == "mean" and row["window"] in NINE:
            assert abs(row["difference"]) <= 0.0501, "the paper's means are of figures it had not rounded yet"


@pytest.mark.parametrize("name", ["window-ablation-g020", "window-ablation-g005"])
def test_the_ablations_at_other_budgets_have_neither_daggers_nor_means(joint: Path, name: str) -> None:
    text = (joint / f"{name}.tex").read_text()
    assert len(lines(joint, name)) == 1 + 6
    assert "dagger" not in text
    assert "Mean" not in text


def test_the_pooled_r_of_the_papers_points_is_the_papers(joint: Path) -> None:
    facts = record(joint, "sr-ndcg")["facts"]
    assert facts["points"] == 504
    assert facts["pearson"] == pytest.approx(0.603, abs=5e-4)
    low, high = facts["pearson_interval"]
    assert low < 0.60 < high
    ours = facts["the_papers_points"]
    assert ours == {
        "points": 504,
        "pearson": pytest.approx(0.603, abs=5e-4),
        "paper": 0.6,
        "difference": ours["pearson"] - 0.6,
    }


@pytest.mark.parametrize("fewer", ["a backbone", "a benchmark"])
def test_the_papers_r_stands_beside_ours_only_if_all_its_points_are_there(tmp_path: Path, fewer: str) -> None:
    names = list(paper.MODELS)[: 2 if fewer == "a backbone" else 3]
    benchmarks = ("vidore-v1", "vidore-v2") if fewer == "a backbone" else ("vidore-v1",)
    found = outcome([write_folder(tmp_path, name, benchmarks) for name in names], "sr-ndcg")
    assert "the_papers_points" not in found.facts
    assert any("No comparison with the paper's r" in note for note in found.notes)


@pytest.mark.slow
def test_methods_that_the_paper_lacks_do_not_move_the_r_that_is_compared(three: list[Path], tmp_path: Path) -> None:
    folders = [Path(shutil.copytree(folder, tmp_path / folder.name)) for folder in three]
    for folder in folders:
        path = folder / "sr-ndcg.json"
        whole = json.loads(path.read_text())
        whole["rows"] += [{**row, "method": "kcenter", "score_retention": 0.0} for row in whole["rows"][:40]]
        path.write_text(json.dumps(whole))
    facts = outcome(folders, "sr-ndcg").facts
    assert facts["points"] == 504 + 120
    assert facts["pearson"] < 0.5
    assert facts["the_papers_points"]["pearson"] == pytest.approx(0.603, abs=5e-4)


def test_intervals_draw_data_sets_within_backbones() -> None:
    rows = [
        {"backbone": b, "data_set": f"{b}{n}", "score_retention": centre + x, "retention": centre + y}
        for b, centre in (("a", 0.0), ("b", 1.0))
        for n in range(3)
        for x in (-1, 1)
        for y in (-1, 1)
    ]
    found = correlations(rows)
    assert found["pearson"] == pytest.approx(0.2), "a quarter of the variance between backbones, one within"
    same = "data sets of a backbone are alike and both backbones are in every draw: no draw can differ"
    assert found["pearson_interval"] == pytest.approx([0.2, 0.2]), same
    rows[0]["retention"] = 5.0
    low, high = correlations(rows)["pearson_interval"]
    assert low < high, "one data set is now unlike the others of its backbone"


def test_the_main_table_prints_the_papers_figures_with_the_best_in_bold(joint: Path) -> None:
    body = lines(joint, "main-table")
    assert any(
        "ViDoRe v2 (mean over 4 data sets)" in line for line in (joint / "main-table.tex").read_text().splitlines()
    )
    sap = [line for line in body if " & SAP & " in line]
    assert len(sap) == 6
    assert sap[0].endswith(r"\textbf{0.81} & \textbf{0.74} & \textbf{86.34} \\")
    first = next(line for line in body if line.startswith("ColPali"))
    assert first.startswith("ColPali & EOS-Adaptive & 0.85 & 0.86 & 0.76 & 89.02 & ")
    table = list(csv.DictReader((joint / "main-table.csv").open()))
    assert len(table) == 3 * 2 * 4 * 3
    assert {float(row["difference"]) for row in table} == {0.0}


def test_the_base_probe_has_drops_and_factors_and_says_who_is_missing(joint: Path) -> None:
    found = record(joint, "base-probe")
    assert found["backbones"] == ["ColPali", "ColQwen2"]
    assert any(note.startswith("left out: Jina v4") and "base-probe is not finished" in note for note in found["notes"])
    assert lines(joint, "base-probe")[1] == r"ColPali, 0.10 & fine-tuned & 0.869 & 0.813 & 0.056 & 2.9$\times$ \\"
    assert drop_factor(0.056, 0.0) is None, "no factor of nothing"


def test_every_file_is_there_says_its_origin_and_compiles(joint: Path, tmp_path: Path) -> None:
    with_figure = {"budget-curve", "layer-curve", "base-probe", "sr-ndcg"}
    files = {}
    for item in ITEMS:
        found = record(joint, item.name)
        assert found["stands_for"].startswith("SAP paper, ")
        assert [source["key"] for source in found["joined"]] == ["0123456789"] * 3
        assert found["joined"][0]["backbone"]["revision"] == "rev-colpali-0123456789"
        assert found["joined"][0]["benchmark"]["VidoreDocVQARetrieval"]["corpus"].startswith("sha256-")
        for ending in ("svg", "png"):
            assert (joint / f"{item.name}.{ending}").exists() == (item.name in with_figure)
        text = (joint / f"{item.name}.tex").read_text()
        assert "ColPali" in text
        assert "ColQwen2" in text
        files[f"{item.name}.tex"] = text
    for picture in joint.glob("*.png"):
        shutil.copy(picture, tmp_path)
    assert "Overfull" not in compiles(tmp_path, files)
    assert (joint / "joint.tex").read_text() == (tmp_path / "all.tex").read_text()


@pytest.mark.slow
def test_figures_can_be_read_and_name_their_backbones(three: list[Path]) -> None:
    everything = Joint(read_sources(three)[0])
    for item in ITEMS:
        draw = item.make(everything).draw
        if draw:
            found = [c for c in complaints(draw) if not c.startswith("no label on the x axis")]  # a grid has them below
            assert found == [], item.name


def test_a_figure_uses_a_papers_words(joint: Path) -> None:
    text = (joint / "budget-curve.svg").read_text()
    for word in ("K-Means", "EOS-Adaptive", "ColQwen2, ViDoRe v2"):
        assert word in text
    for identifier in ("renormalize", "docpruner", "vidore-v2", "jina-v4"):
        assert identifier not in text


@pytest.mark.slow
def test_an_earlier_join_is_neither_joined_nor_left_behind(two: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "joint"
    join(two, out)
    assert (out / "base-probe.png").exists()
    for folder in two:
        (folder / "base-probe.json").unlink()
    done = join([*two, out], out)
    assert [joined.item.name for joined in done if joined.left_out] == ["base-probe"]
    assert not list(out.glob("base-probe.*")), "its figures would be of other folders"
    assert "base-probe" not in (out / "joint.tex").read_text()
    assert any("is itself a join" in note for note in record(out, "main-table")["notes"])


@pytest.mark.slow
def test_the_command_joins_folders_and_nothing_else_takes_any(two: list[Path], tmp_path: Path) -> None:
    run = CliRunner().invoke
    names = [str(folder) for folder in two]
    result = run(app, ["experiment", "join", *names, "--out", str(tmp_path / "joint"), "--json"])
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert [item["experiment"] for item in found] == [item.name for item in ITEMS]
    assert all(Path(path).is_file() for item in found for path in item["files"].values())
    assert "join FOLDER" in run(app, ["experiment", "--list"]).stdout
    for arguments, said in (
        (["join"], "which folders"),
        (["join", *names, "--pairs", "3"], "takes only --out, --json and --quiet, not --pairs"),
        (["main-table", *names], "only `harness experiment join` takes folders"),
    ):
        assert said in str(run(app, ["experiment", *arguments]).exception)


@pytest.mark.slow
def test_what_experiments_really_write_can_be_joined(toy_world, tmp_path: Path) -> None:
    places = {"backbone": toy_world.backbone, "benchmark": toy_world.benchmark, "calibration": toy_world.calibration}
    workbench = Workbench(
        ExperimentSettings(**places, pairs=20, trials=1), toy_world.folder / "stores", tmp_path, 1, quiet
    )
    wanted = ("main-table", "budget-curve", "layer-curve", "window-ablation", "sr-ndcg")
    run_experiments(workbench, [find(name) for name in wanted])
    done = join([workbench.folder], tmp_path / "joint")
    assert [joined.item.name for joined in done if joined.left_out] == ["base-probe"], "a toy has no base model"
    (row,) = record(tmp_path / "joint", "windows")["rows"]
    assert row["window"] == str(workbench.bound.window)
    assert row["gap_mean"] <= 0
    assert {source["backbone"]["name"] for source in record(tmp_path / "joint", "sr-ndcg")["joined"]} == {"toy"}
