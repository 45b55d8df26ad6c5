"""An evaluation of ViDoRe's size without ViDoRe: synthetic stores with its numbers of pages and queries.

Pages are ColPali's (1,024 x 128, float16 on disk), queries have 15 to 25 vectors and one gold page. Vectors are drawn
at random, so the quality figures mean nothing; time and memory are those of the same code that evaluates.
"""

from __future__ import annotations

import resource
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from harness.benchmarks.data_set import DataSet
from harness.evaluation.methods import choose_methods
from harness.evaluation.pruned_pages import Job
from harness.evaluation.results import DataSetEvaluator
from harness.evaluation.run_folder import RunFolder
from harness.evaluation.scores import gold_queries, load_queries
from harness.evaluation.summary import summarise
from harness.evaluation.tally import tally
from harness.progress import Progress
from harness.store.encoded_page import EncodedPage
from harness.store.reader import Store
from harness.store.writer import StoreWriter
from pruners import SWEEP, unit

COLUMNS = {"stage": "stage", "seconds": "s", "cpu_seconds": "CPU s"}
METHODS = ("random", "eos", "ink", "uniform_grid", "first_k")
BUDGETS = SWEEP[1:]
GRID, DIM = (32, 32), 128


@dataclass(frozen=True)
class Shape:
    name: str
    pages: int
    queries: int


SHAPES = (
    Shape("ArxivQA", 500, 500),
    Shape("DocVQA", 500, 451),
    Shape("InfoVQA", 500, 494),
    Shape("Tabfquad", 70, 280),
    Shape("Tatdqa", 277, 1646),
    Shape("ShiftProject", 1000, 100),
    Shape("SyntheticAI", 968, 100),
    Shape("SyntheticEnergy", 977, 100),
    Shape("SyntheticGovernment", 972, 100),
    Shape("SyntheticHealthcare", 965, 100),
    Shape("ESGReports", 1538, 228),
    Shape("EconomicsReports", 452, 232),
    Shape("BioMedicalLectures", 1016, 640),
    Shape("ESGReportsHL", 1538, 52),
)
"""Pages and queries of ViDoRe v1 and v2 as MTEB has them; v2's queries in all four languages."""


def measure(folder: Path, fraction: float, workers: int, progress: Progress) -> tuple[list[dict], dict]:
    """Time by stage, and the peak memory of the largest process."""
    shapes = [replace(s, pages=_part(s.pages, fraction), queries=_part(s.queries, fraction)) for s in SHAPES]
    run = RunFolder(folder / "run")
    shutil.rmtree(run.folder, ignore_errors=True)
    run.folder.mkdir(parents=True)
    methods = [replace(method, trials=1) for method in choose_methods(METHODS, None)]
    clock = {stage: _Clock() for stage in ("write the stores", "prune and score", "measure", "intervals")}
    for shape in shapes:
        data_set = _benchmark(shape)
        with clock["write the stores"]:
            store = _store(folder, shape, data_set, progress)
        evaluator = DataSetEvaluator.of(data_set, store.query_ids)
        gold = gold_queries(evaluator.evaluate)
        queries = load_queries(store, range(len(store.query_ids)))
        job = Job(store, tuple(methods), BUDGETS, 42, queries, gold)
        with clock["prune and score"], progress(f"{shape.name}: score", total=shape.pages, done=0) as advance:
            found = tally(job, evaluator.evaluate, workers, advance)
        with clock["measure"], progress(f"{shape.name}: measure", total=len(methods), done=0) as advance:
            run.write_result("full", evaluator.full(found, DIM), {})
            for method in methods:
                run.write_result(method.slug, evaluator.method(method, found, DIM), {})
                advance(1)
    with clock["intervals"]:
        summarise(run, [shape.name for shape in shapes], methods, BUDGETS)
    rows = [_stage(name, c.wall, c.cpu) for name, c in clock.items()]
    evaluation = [c for name, c in clock.items() if name != "write the stores"]
    rows.append(_stage("the evaluation in all", sum(c.wall for c in evaluation), sum(c.cpu for c in evaluation)))
    pages = sum(shape.pages for shape in shapes)
    return rows, {"pages": pages, "queries": sum(s.queries for s in shapes), "peak_gb": round(_peak_gb(), 2)}


def _stage(name: str, wall: float, cpu: float) -> dict:
    return {"stage": name, "seconds": round(wall, 1), "cpu_seconds": round(cpu, 1)}


def _part(count: int, fraction: float) -> int:
    return max(2, round(count * fraction))


def _benchmark(shape: Shape) -> DataSet:
    queries = {f"q{i}": f"query {i}" for i in range(shape.queries)}
    qrels = {query: {f"p{i % shape.pages}": 1} for i, query in enumerate(queries)}

    def no_image(index: int) -> object:
        raise AssertionError("vectors are drawn, not encoded")

    return DataSet(shape.name, tuple(f"p{i}" for i in range(shape.pages)), no_image, queries, qrels)  # type: ignore[arg-type]


def _store(folder: Path, shape: Shape, data_set: DataSet, progress: Progress) -> Store:
    where = folder / f"{shape.name}-{shape.pages}-{shape.queries}"
    identity = {"synthetic": 2, "shape": [shape.name, shape.pages, shape.queries]}
    with StoreWriter(where, identity, data_set.page_ids) as writer:
        wanted = writer.wanted()
        with progress(f"{shape.name}: write", total=len(wanted), done=0) as advance:
            for page, encoded in zip(wanted, _pages(wanted), strict=True):
                writer.add(page, encoded)
                advance(1)
        if writer.manifest.queries is None:
            writer.add_queries(list(data_set.queries), _queries(shape))
    return Store(where)


def _pages(wanted: list[str]) -> Iterator[EncodedPage]:
    for page in wanted:
        vectors, generator = _vectors(int(page[1:]))
        yield EncodedPage(vectors, GRID, {s: torch.rand(1, len(vectors), generator=generator) for s in ("eos", "ink")})


def _vectors(page: int) -> tuple[torch.Tensor, torch.Generator]:
    generator = torch.Generator().manual_seed(page)
    return unit(torch.randn(GRID[0] * GRID[1], DIM, generator=generator)), generator


def _queries(shape: Shape) -> list[torch.Tensor]:
    """Vectors of the gold page with as much noise again, so that the full model finds it."""
    rng = np.random.default_rng(shape.queries)
    drawn = []
    for query in range(shape.queries):
        vectors, generator = _vectors(query % shape.pages)
        length = int(rng.integers(15, 26))
        drawn.append(unit(vectors[:length] + unit(torch.randn(length, DIM, generator=generator))))
    return drawn


class _Clock:
    """Wall and CPU time of all entries, worker processes included."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0

    def __enter__(self) -> None:
        self._start = time.perf_counter(), _cpu_seconds()

    def __exit__(self, *error: object) -> None:
        self.wall += time.perf_counter() - self._start[0]
        self.cpu += _cpu_seconds() - self._start[1]


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def _peak_gb() -> float:
    used = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return max(used) / (1e9 if sys.platform == "darwin" else 1e6)
