"""`harness calibrate`, and which window an evaluation uses: given, saved, measured, or reported."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.backbones import registry
from harness.backbones.contract import Card
from harness.calibration.calibrate import as_reported
from harness.calibration.data import own_calibration_set
from harness.calibration.window_files import read_window, reported, window_file
from harness.cli import app
from harness.evaluation.config import Config
from harness.evaluation.evaluate import RunPaths, evaluate
from harness.progress import quiet
from pruners import PruneBoardError
from tests.harness.evaluation.toy import write_backbone, write_data_set

CARD = Card("toy", "none", "1", 3, 2, 16, "float32", (), "drawn", "", "", "", "{}")


class Retriever:
    """A backbone of which only the card is looked at."""

    def __init__(self, **changes) -> None:
        self.card = replace(CARD, **changes)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("windows")
    write_data_set(folder / "pages", range(12), queries=12)
    write_data_set(folder / "calibration", range(100, 130), queries=30)
    write_backbone(folder)
    return folder


def calibrate(place: Path, stores: str, *more: str) -> dict:
    options = ["--backbone", str(place / "toy_backbone.py"), "--benchmark", str(place / "calibration")]
    result = CliRunner().invoke(app, ["calibrate", *options, "--store", str(place / stores), "--json", *more])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def run(place: Path, stores: str, out: str, **settings) -> tuple[dict, list[str]]:
    """What a run recorded of its window, and what it said."""
    said: list[str] = []
    config = Config(
        backbone=str(place / "toy_backbone.py"), benchmark=str(place / "pages"), pruners=("sap",), **settings
    )
    found = evaluate(config, RunPaths(place / stores, place / out, 1), quiet, said.append)
    assert found.failures == {}
    return found.run.read_json("calibration.json")["window"], said


def test_calibrate_saves_the_curve_its_settings_and_what_was_read(place: Path) -> None:
    found = calibrate(place, "a", "--pairs", "20", "--seed", "5")
    saved = read_window(Path(found["file"]), registry.load(str(place / "toy_backbone.py")))
    assert (saved.pairs, saved.seed, saved.gamma, saved.rho) == (20, 5, 0.1, 0.2)
    assert len(saved.curve) == 3
    assert set(saved.content) == {"corpus", "queries", "qrels"}
    assert 0 < len(saved.images) <= 20
    assert found["window"] == saved.window
    assert found["reported"] is None


def test_an_evaluation_uses_the_saved_window_and_says_so(place: Path) -> None:
    found = calibrate(place, "b", "--gamma", "0.3", "--rho", "0.6")
    window, said = run(place, "b", "run-b")  # no calibration set is named: the saved window is enough
    assert (window["source"], window["window"], window["gamma"]) == ("saved", found["window"], 0.3)
    assert any(found["file"] in line and f"window {found['window']}" in line for line in said)


def test_a_file_given_as_window_is_the_same(place: Path) -> None:
    found = calibrate(place, "c")
    window, _ = run(place, "another-root", "run-c", window=found["file"])
    assert window["window"] == found["window"]


def test_without_a_saved_one_the_window_is_measured_on_the_calibration_set(place: Path) -> None:
    window, said = run(place, "d", "run-d", calibration=str(place / "calibration"), window_pairs=25)
    assert (window["source"], window["pairs"]) == ("sr-guided", 25)
    assert "30 pages, none of which is evaluated" in said[0]
    assert "SR-guided on 25 pairs of calibration" in said[1]


@pytest.mark.parametrize("field", ["name", "revision", "layers", "signals_from", "page_prompt"])
def test_a_window_of_another_backbone_is_refused(place: Path, field: str) -> None:
    found = calibrate(place, "e")
    other = Retriever(**{field: 4 if field == "layers" else "another"})
    with pytest.raises(PruneBoardError, match=f"was made for another backbone: {field}"):
        read_window(Path(found["file"]), other)
    assert window_file(place, other) != window_file(place, Retriever()), "nor is it found by itself"


def test_precision_and_device_make_no_other_backbone(place: Path) -> None:
    assert window_file(place, Retriever(dtype="bfloat16", max_visual_tokens=9)) == window_file(place, Retriever())


@pytest.mark.parametrize("damage", [lambda text: text[:-40], lambda text: text.replace('"curve"', '"kurve"')])
def test_a_damaged_file_is_named(place: Path, damage) -> None:
    found = calibrate(place, "f")
    (place / "damaged.json").write_text(damage(Path(found["file"]).read_text()))
    with pytest.raises(PruneBoardError, match=r"damaged.json holds no window"):
        read_window(place / "damaged.json", Retriever())


def test_a_window_learned_from_evaluated_pages_is_refused(place: Path) -> None:
    found = calibrate(place, "g")
    saved = json.loads(Path(found["file"]).read_text())
    config = Config(backbone=str(place / "toy_backbone.py"), benchmark=str(place / "calibration"), pruners=("sap",))
    with pytest.raises(PruneBoardError, match=f"calibration set {saved['benchmark']} and calibration share"):
        evaluate(config, RunPaths(place / "g", place / "run-g", 1), quiet)


def test_a_run_goes_on_with_the_window_it_began_with(place: Path) -> None:
    window, _ = run(place, "h", "run-h", calibration=str(place / "calibration"))
    found = calibrate(place, "h", "--rho", "1")
    assert found["window"] != window["window"], "else this test says nothing"
    with pytest.raises(PruneBoardError, match=f"was begun with window {window['window']}"):
        run(place, "h", "run-h", calibration=str(place / "calibration"))


def test_layers_the_backbone_has_not_are_refused_before_any_work(place: Path) -> None:
    with pytest.raises(PruneBoardError, match="beyond the 3 that toy has"):
        run(place, "i", "run-i", window="2-3")
    assert not (place / "i").exists()


@pytest.mark.parametrize(
    ("name", "layers", "window"), [("colpali", 18, "11-14"), ("colqwen2", 28, "18-23"), ("jina-v4", 36, "26-33")]
)
def test_the_papers_windows_are_shipped_and_marked_as_reported(name: str, layers: int, window: str) -> None:
    bound = as_reported(replace(CARD, name=name, layers=layers))
    assert bound is not None
    assert str(bound.window) == window
    assert bound.origin["source"] == "reported"
    assert "not measured here" in bound.told
    assert registry.catalogue()[name].options["checkpoint"] == bound.origin["for"], "our default checkpoint is theirs"
    assert reported(replace(CARD, name=name, layers=layers + 1)) is None, "another depth is another backbone"


def test_a_backbone_the_paper_did_not_evaluate_has_no_reported_window() -> None:
    assert reported(replace(CARD, name="colsmol")) is None


def test_a_window_made_with_another_library_or_another_version_of_ones_own_file_is_refused(place: Path) -> None:
    file = Path(calibrate(place, "j")["file"])
    own = registry.load(str(place / "toy_backbone.py"))
    record = json.loads(file.read_text())
    record["backbone"]["libraries"] = record["backbone"]["libraries"].replace("transformers 5", "transformers 4")
    (place / "older.json").write_text(json.dumps(record))
    with pytest.raises(PruneBoardError, match=r"another backbone: libraries .*transformers 4"):
        read_window(place / "older.json", own)
    text = (place / "toy_backbone.py").read_text()
    (place / "edited").mkdir()
    (place / "edited" / "toy_backbone.py").write_text(text.replace("exponential", "standard_normal"))
    edited = registry.load(str(place / "edited" / "toy_backbone.py"))
    with pytest.raises(PruneBoardError, match="another backbone: code"):
        read_window(file, edited)
    assert window_file(place, edited) != window_file(place, own)


def test_only_nano_has_pages_to_calibrate_on_by_itself() -> None:
    assert own_calibration_set("nano") == "minidocs-calibration"
    with pytest.raises(PruneBoardError, match="name the pages to calibrate colqwen2 on with --benchmark"):
        own_calibration_set("colqwen2")
