"""Methods that are not built in see pages and nothing else, and figures are the same as if they were built in.

Every attack is run twice: in this process, as methods once were, where it must work; and as a guest, where it must not.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch

from harness.evaluation import methods
from harness.evaluation.config import Config
from harness.evaluation.evaluate import Evaluation, RunPaths, evaluate
from harness.evaluation.run_folder import RunFolder
from harness.progress import quiet
from pruners import Page, Scorer, learned, scorer
from pruners.core.catalog import resolve_stored
from pruners.guests import sandbox
from pruners.guests.host import Isolation

needs_sandbox = pytest.mark.skipif(sandbox.missing() is not None, reason=str(sandbox.missing()))
BUILT_IN = Path(methods.__file__).parents[2] / "pruners"

HONEST = """
from pruners import scorer

@scorer("honest")
def honest(page):
    return page.vectors[:, 0]
"""

GOLD = """
import gc
import torch
from pruners import scorer

def oracle(page, queries):
    return torch.stack([(page.vectors @ q.float().T).max(1).values for q in queries]).amax(0)

@scorer("gold")
def gold(page):
    for job in gc.get_objects():
        if type(job).__name__ == "Job" and getattr(job, "gold", None):
            mine = [job.store.query(q) for i, qs in job.gold.items() for q in qs if job.store.page(i).id == page.id]
            if mine:
                return oracle(page, mine)
    return page.vectors[:, 0]
"""
"""Looks through all objects of its process for the gold queries."""

FRAMES = """
import sys
import torch
from pruners import scorer

@scorer("frames")
def frames(page):
    frame = sys._getframe()
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if type(value).__name__ == "Job":
                mine = [value.store.query(q) for i, qs in value.gold.items() for q in qs
                        if value.store.page(i).id == page.id]
                if mine:
                    return torch.stack([(page.vectors @ q.float().T).max(1).values for q in mine]).amax(0)
        frame = frame.f_back
    return page.vectors[:, 0]
"""
"""Walks up the interpreter's frames to the gold queries."""

FILE = """
from pathlib import Path
import torch
from pruners import scorer

@scorer("file")
def file(page):
    from safetensors import safe_open
    try:
        tensors = []
        for path in sorted(Path("STORES").glob("**/queries*.safetensors")):
            with safe_open(path, "pt") as opened:
                tensors += [opened.get_tensor(name) for name in opened.keys()]
    except OSError:
        tensors = []
    tokens = [t.float() for t in tensors if t.ndim == 2 and t.shape[1] == page.vectors.shape[1]]
    return (page.vectors @ torch.cat(tokens).T).max(1).values if tokens else page.vectors[:, 0]
"""
"""Reads the queries from the store: a patch that some query asks for stands out."""

PATCH = """
import numpy as np
from pruners import scorer
try:
    import harness.evaluation.scores as scores
    original = scores.score_page

    def best(indexed, results, queries):
        found = original(indexed, results, queries)
        found[1:] = found[:1]  # every method scores as the full page does
        return found

    scores.score_page = best
except OSError:  # a sandbox does not even show it
    pass

@scorer("patch")
def patch(page):
    return page.vectors[:, 0]
"""
"""Changes how everybody is scored."""


class World:
    """The toy benchmark, evaluated with methods of files, as guests or as once."""

    def __init__(self, toy, folder: Path) -> None:
        self.toy, self.folder, self.runs = toy, folder, 0
        self.stores = toy.folder / "stores"

    def file(self, name: str, text: str) -> str:
        (self.folder / f"{name}.py").write_text(text.replace("STORES", str(self.stores)))
        return str(self.folder / f"{name}.py")

    def evaluate(self, *pruners: str, own=(), sandbox: str = "auto", workers: int = 1, budgets=(0.1,)) -> Evaluation:
        self.runs += 1
        config = Config(
            backbone=self.toy.backbone,
            benchmark=self.toy.benchmark,
            calibration=self.toy.calibration,
            pruners=(*pruners, *map(str, own)),
            budgets=budgets,
            calibration_pages=20,
            window_pairs=20,
        )
        paths = RunPaths(self.stores, self.folder / f"run-{self.runs}", workers, apart=Isolation(sandbox))
        return evaluate(config, paths, quiet, own=own)

    def as_once(self, monkeypatch: pytest.MonkeyPatch, *pruners: str) -> Evaluation:
        """With the methods' code in this process."""
        import harness.evaluation.scores as scores

        with monkeypatch.context() as patch:
            patch.setattr(
                methods, "host", lambda texts, own, apart: [*resolve_stored(texts), *((o, None) for o in own)]
            )
            patch.setattr(scores, "score_page", scores.score_page)  # restored, whatever a method does to it
            return self.evaluate(*pruners)


@pytest.fixture
def world(toy, tmp_path: Path) -> World:
    return World(toy, tmp_path)


def ndcg(found: Evaluation, method: str) -> float:
    assert not found.failures
    return next(row["ndcg@5"] for row in found.rows if row["method"] == method)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text"), [("gold", GOLD), ("frames", FRAMES)])
def test_a_method_that_looks_for_the_gold_queries_finds_none(world, monkeypatch, name: str, text: str) -> None:
    honest, peeking = world.file("honest", HONEST), world.file(name, text)
    once = world.as_once(monkeypatch, honest, peeking)
    assert ndcg(once, name) > ndcg(once, "honest") + 0.1, "the attack must work where nothing is in its way"
    now = world.evaluate(honest, peeking, sandbox="off")
    assert ndcg(now, name) == ndcg(now, "honest") == ndcg(once, "honest")


@needs_sandbox
def test_a_method_that_opens_the_stores_queries_cannot(world, monkeypatch) -> None:
    honest, peeking = world.file("honest", HONEST), world.file("file", FILE)
    once = world.as_once(monkeypatch, honest, peeking)
    assert ndcg(once, "file") > ndcg(once, "honest") + 0.02
    now = world.evaluate(honest, peeking)
    assert ndcg(now, "file") == ndcg(now, "honest") == ndcg(once, "honest")


@pytest.mark.slow
def test_a_method_that_patches_our_functions_changes_no_row(world, monkeypatch) -> None:
    honest, patching = world.file("honest", HONEST), world.file("patch", PATCH)
    alone = ndcg(world.evaluate(honest), "honest")
    assert ndcg(world.as_once(monkeypatch, honest, patching), "honest") > alone
    for shut_in in ("off", "auto"):
        assert ndcg(world.evaluate(honest, patching, sandbox=shut_in), "honest") == alone


ENDS = """
from pruners import scorer

@scorer("ends")
def ends(page):
    if page.id == "page-7":
        HOW
    return page.vectors[:, 0]
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("import os; os._exit(0)", "its process ended without a word"),
        ("import ctypes; ctypes.string_at(0)", "its process ended without a word"),
        ("raise SystemExit(3)", "failed with SystemExit: 3"),
        ("raise KeyboardInterrupt", "failed with KeyboardInterrupt"),
        ("import time; time.process_time = lambda: float('nan')", "says that it took nan seconds"),
    ],
)
def test_a_method_that_ends_its_process_has_failed_and_others_go_on(world, how: str, reason: str) -> None:
    text = ENDS.replace("HOW", how) + HONEST  # in one file: they share a process, which is started again
    found = world.evaluate(world.file("ends", text), "random", workers=2)
    assert list(found.failures) == ["ends"]
    assert reason in found.failures["ends"]
    assert "page-7" in found.failures["ends"]
    assert {row["method"] for row in found.rows} == {"full", "honest", "random"}


COPIED = {
    "random": ("random", "random_nonblank"),
    "kmeans": ("kmeans",),
    "grid_pooling": ("row_pool",),
    "sap": ("sap",),
}


@pytest.mark.slow
def test_figures_are_the_same_in_a_process_of_its_own(world) -> None:
    """Built-in methods copied to a file, under names of their own: scores, merged groups, windows, random draws."""
    texts, names = [], []
    for file, known in COPIED.items():
        text = (BUILT_IN / f"{file}.py").read_text()
        declared = re.findall(r'^@(?:scorer|reducer|pruner|preset|diagnostic)\(\s*"(\w+)"', text, re.MULTILINE)
        for name in declared:
            text = re.sub(rf'^(@\w+\(\s*)"{name}"', rf'\1"{name}_copied"', text, flags=re.MULTILINE)
        path = world.file(f"{file}_copied", text)
        texts += [f"{path}:{name}_copied" for name in known if name in declared]
        names += [name for name in known if name in declared]
    assert len(names) == 5
    composed = ["adaptive(sap)", "merge(sap)"]
    own = [*texts, "adaptive(sap_copied)", "merge(sap_copied)"]
    found = world.evaluate(*names, *composed, *own, workers=2, budgets=(0.05, 0.2))
    assert not found.failures
    run = RunFolder(found.run.folder)
    for name in [*names, *composed]:
        copied = re.sub(r"(\w+)(?=\)?$)", r"\1_copied", name)
        for data_set in ("plain", "tongues"):
            ours, theirs = (table(run, data_set, text) for text in (name, copied))
            assert ours == theirs, (name, data_set)
    made = json.loads((found.run.folder / "methods.json").read_text())
    assert made["adaptive(sap)"]["thresholds"] == made["adaptive(sap_copied)"]["thresholds"] != {}


def table(run: RunFolder, data_set: str, text: str) -> tuple[list[dict], list]:
    """All that a run has of a method on a data set: every query's row, and the vectors kept of every page."""
    slug = "".join(c if c.isalnum() or c in "._-=" else "_" for c in text)
    with pq.ParquetFile(run.folder / f"results/{data_set}/{slug}.parquet") as file:
        rows = file.read().to_pylist()
    return rows, run.read_result(data_set, slug).kept.tolist()


LEARNS = """
import dataclasses
import torch
from pruners import Scorer, learned, scorer

@scorer("learns")
@dataclasses.dataclass(frozen=True)
class Learns(Scorer):
    axis: torch.Tensor | None = learned()

    def calibrate(self, pages, budgets):
        return self.replace(axis=torch.cat([page.vectors for page in pages]).mean(0))

    def score(self, page):
        return page.vectors @ self.axis
"""


def test_a_method_that_learns_does_so_in_its_own_process(world, monkeypatch) -> None:
    file = world.file("learns", LEARNS)
    now = world.evaluate(file, workers=2)
    once = world.as_once(monkeypatch, file)
    assert ndcg(now, "learns") == ndcg(once, "learns")
    kept = json.loads((now.run.folder / "methods.json").read_text())["learns"]
    assert kept["state"]["fields"]["axis"] == {"tensor": "axis"}
    assert kept["made_by"] == json.loads((once.run.folder / "methods.json").read_text())["learns"]["made_by"]


@scorer("cell")
def cell(page: Page) -> torch.Tensor:
    """As if written in a notebook."""
    return page.vectors[:, 1]


@scorer("cell_that_learns")
@dataclasses.dataclass(frozen=True)
class CellThatLearns(Scorer):
    axis: torch.Tensor | None = learned()
    where: int = 0

    def calibrate(self, pages, budgets):
        return self.replace(axis=pages[0].vectors[0], where=os.getpid())

    def score(self, page):
        return page.vectors @ self.axis


def test_objects_of_a_session_run_elsewhere_too(world, monkeypatch) -> None:
    found = world.evaluate(own=[cell(), CellThatLearns()], workers=2)
    assert not found.failures
    kept = json.loads((found.run.folder / "methods.json").read_text())["cell_that_learns"]
    assert kept["state"]["fields"]["where"] not in (0, os.getpid())
