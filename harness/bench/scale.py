"""How time and memory of an evaluation grow with the corpus: pages made from their index, so that no disk is needed.

Every size runs in a process of its own, whose peak memory is its own. Beside the evaluation stands the physical limit:
the product of every full page with all queries, and nothing else. CPU seconds are those of all processes together: they
say how the work grows, also on a machine that others use.
"""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from harness.benchmarks.data_set import DataSet
from harness.evaluation.methods import choose_methods
from harness.evaluation.pruned_pages import Job
from harness.evaluation.results import DataSetEvaluator
from harness.evaluation.run_folder import RunFolder
from harness.evaluation.scores import gold_queries, load_queries
from harness.evaluation.tally import tally
from harness.memory import peak_mb, peak_mb_of_children
from harness.progress import Progress
from pruners import Page, unit

COLUMNS = {
    "pages": "pages",
    "cpu": "CPU s",
    "per_page": "CPU ms / page",
    "limit": "GEMM alone, ms",
    "seconds": "s",
    "peak_mb": "peak MB",
    "worker_peak_mb": "worker, peak MB",
}
METHODS = ("random", "first_k", "uniform_grid", "kcenter", "kmeans")
BUDGETS = (0.05, 0.1, 0.2)
GRID, DIM, TOKENS = (5, 6), 128, 20
TIMED_PAGES = 200  # of the limit


class _Names(Sequence[str]):
    """Ids made when asked for: a million of them take no memory."""

    def __init__(self, letter: str, length: int) -> None:
        self.letter, self.length = letter, length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self.length))]
        if not 0 <= index < self.length:
            raise IndexError(index)
        return f"{self.letter}{index:08d}"


@dataclass(frozen=True)
class MadeUpStore:
    """A store's face: the vectors of a page are drawn from its index, those of a query look for its gold page."""

    pages: int
    queries: int
    tokens: int = TOKENS
    """Of a query."""
    dim: int = DIM
    grid: tuple[int, int] = GRID

    def __len__(self) -> int:
        return self.pages

    @property
    def page_ids(self) -> Sequence[str]:
        return _Names("p", self.pages)

    @property
    def query_ids(self) -> tuple[str, ...]:
        return tuple(_Names("q", self.queries))

    @property
    def mean_vectors(self) -> float:
        return float(self.grid[0] * self.grid[1])

    def gold(self, query: int) -> int:
        return query * self.pages // self.queries

    def page(self, index: int) -> Page:
        return Page(f"p{index:08d}", _vectors(index, self.grid), self.grid, {})

    def query(self, index: int) -> torch.Tensor:
        near = _vectors(self.gold(index), self.grid)[torch.arange(self.tokens) % (self.grid[0] * self.grid[1])]
        noise = torch.from_numpy(np.random.default_rng([1, index]).normal(size=near.shape).astype(np.float32))
        return unit(near + noise / DIM**0.5)


@lru_cache(maxsize=4)
def _vectors(index: int, grid: tuple[int, int]) -> torch.Tensor:
    drawn = np.random.default_rng([0, index]).standard_normal((grid[0] * grid[1], DIM), np.float32)
    return unit(torch.from_numpy(drawn))


def measure(sizes: Sequence[int], queries: int, tokens: int, workers: int, progress: Progress) -> list[dict]:
    """A row for every number of pages."""
    rows = []
    spawn = multiprocessing.get_context("spawn")
    with progress("evaluate made-up pages", total=len(sizes), done=0) as advance:
        for pages in sizes:
            with ProcessPoolExecutor(1, mp_context=spawn) as pool:  # a process of its own
                rows.append(pool.submit(_evaluate, pages, queries, tokens, workers).result())
            advance(1)
    return rows


def _evaluate(pages: int, queries: int, tokens: int, workers: int) -> dict[str, Any]:
    store = MadeUpStore(pages, queries, tokens)
    qrels = {name: {store.page_ids[store.gold(i)]: 1} for i, name in enumerate(store.query_ids)}
    names: Any = store.page_ids
    no_image: Any = None
    data_set = DataSet("made up", names, no_image, dict.fromkeys(qrels, ""), qrels)
    methods = [replace(method, trials=1) for method in choose_methods(METHODS, None)]
    as_store: Any = store
    start, before = time.perf_counter(), _cpu()
    evaluator = DataSetEvaluator.of(data_set, store.query_ids)

    def job() -> Job:
        tiles = load_queries(as_store, range(queries))
        return Job(as_store, tuple(methods), BUDGETS, 42, tiles, gold_queries(evaluator.evaluate))

    with tempfile.TemporaryDirectory() as folder:
        run = RunFolder(Path(folder))
        found = tally(job(), evaluator.evaluate, workers, lambda pages: None)
        run.write_result("full", evaluator.full(found, DIM), {})
        for method in methods:
            run.write_result(method.slug, evaluator.method(method, found, DIM), {})
    seconds, cpu = time.perf_counter() - start, _cpu() - before
    peak, workers_peak = peak_mb(), peak_mb_of_children()
    return {
        "pages": pages,
        "cpu": round(cpu, 1),
        "per_page": round(1000 * cpu / pages, 2),
        "limit": round(1000 * _limit(store), 2),
        "seconds": round(seconds, 1),
        "peak_mb": round(peak),
        "worker_peak_mb": round(workers_peak),
    }


def _cpu() -> float:
    """CPU seconds of this process and of those that it started and that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _limit(store: MadeUpStore) -> float:
    """CPU seconds of one thread for the product of a full page with all queries."""
    torch.set_num_threads(1)
    queries = torch.cat([store.query(i) for i in range(store.queries)])
    pages = [store.page(i).vectors for i in range(min(TIMED_PAGES, store.pages))]
    pages[0] @ queries.T
    start = time.process_time()
    for vectors in pages:
        queries @ vectors.T
    return (time.process_time() - start) / len(pages)
