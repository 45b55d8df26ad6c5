"""A result belongs to the code, the parameters and the calibration that made it: anything else is measured again."""

import copy
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from toy import write_data_set

from harness.evaluation.config import Config
from harness.evaluation.evaluate import Evaluation, RunPaths, evaluate
from harness.evaluation.made_by import _state
from harness.evaluation.run_folder import RunFolder
from harness.progress import quiet
from harness.submissions.run_facts import FinishedRun
from harness.submissions.schema import Origin
from harness.submissions.submit import WantedMethods, new_submissions
from pruners import PruneBoardError

MINE = """
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from pruners import scorer
from {helper} import SIGN


@scorer("mine")
def mine(page):
    '''Distance from the mean.'''
    return SIGN * (page.vectors - page.vectors.mean(0)).norm(dim=-1)
"""


class World:
    """A method of one's own beside built-in ones, evaluated again and again into one folder."""

    def __init__(self, toy, folder: Path) -> None:
        self.toy, self.folder, self.said = toy, folder, []
        self.file = folder / "mine.py"
        self.helper = folder / f"sign_{folder.name}.py"  # a name of its own: Python keeps modules by name
        self.source = MINE.replace("{helper}", self.helper.stem)
        self.file.write_text(self.source)
        self.helper.write_text("SIGN = 1\n")
        write_data_set(folder / "calibration", range(100, 130), queries=30)

    def evaluate(self) -> Evaluation:
        self.said.clear()
        config = Config(
            backbone=self.toy.backbone,
            benchmark=self.toy.benchmark,
            calibration=str(self.folder / "calibration"),
            pruners=(str(self.file), "eos", "docpruner", "docpruner(z=0.5)"),
            budgets=(0.2,),
        )
        places = RunPaths(self.toy.folder / "stores", self.folder / "run", 1)
        return evaluate(config, places, quiet, self.said.append)

    def again(self) -> tuple[set[str], dict[str, float]]:
        """Evaluate again: which results were written, and each method's NDCG@5."""
        results = self.folder / "run" / "results" / "plain"
        for path in results.glob("*.json"):
            os.utime(path, (0, 0))
        found = self.evaluate()
        written = {path.stem for path in results.glob("*.json") if path.stat().st_mtime > 0}
        return written, {row["method"]: row["ndcg@5"] for row in found.rows}


@pytest.fixture
def world(toy, tmp_path: Path) -> World:
    world = World(toy, tmp_path)
    world.evaluate()
    return world


def test_an_edited_file_is_measured_again_and_nothing_else(world: World) -> None:
    _, before = world.again()
    assert "nothing is left to evaluate" in world.said
    world.file.write_text(world.source.replace("SIGN *", "-SIGN *"))
    written, after = world.again()
    assert written == {"mine", "full"}, "the full model is written with every pass; the other methods are left alone"
    assert "mine.py changed since: measuring mine again" in world.said
    assert after["mine"] != before["mine"]
    assert {**after, "mine": 0} == {**before, "mine": 0}


def test_what_a_file_imports_from_its_folder_is_its_code_too(world: World) -> None:
    _, before = world.again()
    world.helper.write_text("SIGN = -1\n")
    written, after = world.again()
    assert written == {"mine", "full"}
    assert after["mine"] != before["mine"], "the helper is imported again, not taken from memory"


def test_a_comment_or_a_docstring_is_no_change(world: World) -> None:
    world.file.write_text(world.source.replace("Distance from the mean.", "How far out.") + "\n# a note\n")
    written, _ = world.again()
    assert written == set()


def test_what_was_learned_from_other_pages_is_measured_again(world: World) -> None:
    shutil.rmtree(world.folder / "calibration")
    write_data_set(world.folder / "calibration", range(140, 170), queries=30)
    written, _ = world.again()
    assert written == {"docpruner", "full"}
    assert "what it learns from calibration pages changed since: measuring docpruner again" in world.said


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda record: record["made_by"].update(project="0.0.9 sha256-0"), "PruneBoard itself changed since"),
        (lambda record: record["made_by"].update(libraries="numpy 1.0"), "the libraries that compute changed since"),
        (lambda record: record.pop("made_by"), "an earlier release left no note of what it measured"),
        (lambda record: record["made_by"].update(store="0"), "the encoded pages changed since"),
    ],
)
def test_results_of_another_release_library_or_store_are_measured_again(world: World, change, reason: str) -> None:
    path = world.folder / "run" / "results" / "plain" / "eos.json"
    record = json.loads(path.read_text())
    change(record)
    RunFolder(world.folder / "run").write_json("results/plain/eos.json", record)
    written, _ = world.again()
    assert written == {"eos", "full"}
    assert f"{reason}: measuring eos again" in world.said


def test_a_partner_follows_the_method_at_whose_ratio_it_stands(world: World) -> None:
    path = world.folder / "run" / "results" / "plain" / "docpruner_z=0.5_.json"
    partner = path.with_name("eos_@_docpruner_z=0.5_.json".replace("@", "_"))
    native, beside = (json.loads(p.read_text())["made_by"] for p in (path, partner))
    assert beside["composition"] == "eos"
    assert beside["learned"] != json.loads(path.with_name("eos.json").read_text())["made_by"]["learned"]
    assert native["code"] == beside["code"], "made of both"


def test_a_run_whose_results_are_of_other_code_than_it_names_is_not_submitted(world: World, tmp_path: Path) -> None:
    old = Path(shutil.copytree(world.folder / "run" / "results", tmp_path / "old"))
    world.file.write_text(world.source.replace("SIGN *", "-SIGN *"))
    world.evaluate()
    choice = WantedMethods(Origin(submitter="we", submitted="2026-11-16"), methods=("mine",))
    assert len(list(new_submissions(FinishedRun(world.folder / "run"), choice))) == 1
    for path in (old / "plain").glob("mine.*"):
        shutil.copy(path, world.folder / "run" / "results" / "plain")
    with pytest.raises(PruneBoardError, match="mine on plain was not measured by the code that the run names"):
        list(new_submissions(FinishedRun(world.folder / "run"), choice))


def test_a_run_of_an_earlier_release_is_not_submitted(world: World) -> None:
    path = world.folder / "run" / "methods.json"
    methods = json.loads(path.read_text())
    methods["mine"].pop("made_by")
    RunFolder(world.folder / "run").write_json("methods.json", methods)
    choice = WantedMethods(Origin(submitter="we", submitted="2026-11-16"), methods=("mine",))
    with pytest.raises(PruneBoardError, match="is of an earlier release, which left no note of what measured mine"):
        list(new_submissions(FinishedRun(world.folder / "run"), choice))


def test_changed_judgements_are_measured_again(world: World) -> None:
    pages = world.folder / "pages"
    shutil.copytree(Path(world.toy.benchmark) / "plain", pages / "plain")
    world.toy = replace(world.toy, benchmark=str(pages))
    shutil.rmtree(world.folder / "run")
    world.evaluate()
    _, before = world.again()
    (file,) = (pages / "plain" / "qrels").glob("*.parquet")
    judged = pq.read_table(file)
    turned = pa.array(judged["corpus-id"].to_pylist()[::-1])
    pq.write_table(judged.set_column(judged.column_names.index("corpus-id"), "corpus-id", turned), file)
    written, after = world.again()
    assert written >= {"mine", "eos", "docpruner", "full"}
    assert "the relevance judgements changed since: measuring eos again" in world.said
    assert after["eos"] != before["eos"]


def test_a_method_that_fails_now_does_not_keep_its_figures_of_before(world: World) -> None:
    learner = world.source.replace("from pruners import scorer", "from pruners import Scorer, learned, scorer")
    learner = learner[: learner.index("@scorer")] + LEARNER
    world.file.write_text(learner)
    _, before = world.again()
    assert "mine" in before
    world.file.write_text(learner.replace("return self", "return 1 // 0"))
    world.said.clear()
    found = world.evaluate()
    assert "failed with ZeroDivisionError" in found.failures["mine"]
    assert "mine" not in {row["method"] for row in found.rows}, "its figures were of the code before"
    assert {"eos", "docpruner"} <= {row["method"] for row in found.rows}, "the others are finished"


LEARNER = """
from dataclasses import dataclass


@scorer("mine")
@dataclass(frozen=True)
class Mine(Scorer):
    middle: object = learned()

    def calibrate(self, pages, budgets):
        return self

    def score(self, page):
        return SIGN * page.vectors.norm(dim=-1)
"""


def test_no_method_takes_the_name_of_the_full_model(world: World) -> None:
    world.file.write_text(world.source.replace('@scorer("mine")', '@scorer("full")'))
    with pytest.raises(PruneBoardError, match="the name 'full' is taken twice"):
        world.evaluate()


def test_a_file_may_import_another_that_is_evaluated_too(world: World) -> None:
    variant = world.folder / f"variant_{world.folder.name}.py"
    variant.write_text(world.source.replace("mine", "variant") + f"\nimport {world.file.stem}\n")
    config = Config(
        backbone=world.toy.backbone,
        benchmark=world.toy.benchmark,
        pruners=(str(world.file), str(variant)),
        budgets=(0.2,),
    )
    found = evaluate(config, RunPaths(world.toy.folder / "stores", world.folder / "both", 1), quiet)
    assert {row["method"] for row in found.rows} == {"full", "mine", "variant"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.tensor([2**24]), torch.tensor([2**24 + 1])),
        (torch.tensor([1.0], dtype=torch.float64), torch.tensor([1.0 + 1e-12], dtype=torch.float64)),
        (torch.tensor([1]), torch.tensor([True])),
        ({"a": 1}, {"a": 2}),
        ({"x", "y"}, {"x", "z"}),
    ],
)
def test_learned_values_are_told_apart(one, other) -> None:
    assert _state(one) != _state(other)
    assert _state(one) == _state(copy.deepcopy(one))


def test_a_number_of_numpy_is_the_number() -> None:
    assert _state(np.float64(0.5)) == _state(0.5)
