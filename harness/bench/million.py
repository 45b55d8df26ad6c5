"""`harness bench million`: what a large corpus takes, from rates: device hours, disk, core hours, cost.

The rate of encoding is stated by whoever measured it (`harness evaluate --dry-run` does); pruning and scoring a page
are measured here, on made-up pages of the size that was asked for, in CPU time of one core.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from harness.bench.scale import BUDGETS, DIM, METHODS, MadeUpStore
from harness.evaluation.methods import choose_methods
from harness.evaluation.pruned_pages import Job
from harness.evaluation.scores import load_queries, score_pages
from harness.progress import Progress
from harness.workers import one_thread

COLUMNS = {
    "stage": "stage",
    "hours": "hours",
    "on": "on",
    "device_hours": "hours x devices",
    "cost": "cost",
    "disk": "disk",
}
TIMED_PAGES = 12
FLOAT16, FLOAT32 = 2, 4


@dataclass(frozen=True)
class Corpus:
    """What is encoded and evaluated."""

    pages: int
    grid: tuple[int, int]
    signal_rows: int
    """Numbers that signals keep of each vector: most have one a layer."""
    queries: int

    @property
    def page_bytes(self) -> int:
        vectors = self.grid[0] * self.grid[1]
        return vectors * DIM * FLOAT16 + vectors * self.signal_rows * FLOAT32


@dataclass(frozen=True)
class Machines:
    """Who works, how fast, at which price an hour."""

    rate: float
    """Pages a second that one device encodes."""
    devices: int
    cores: int
    device_price: float
    core_price: float


def plan(corpus: Corpus, machines: Machines, progress: Progress) -> list[dict[str, Any]]:
    """A row for each stage."""
    encoding = corpus.pages / machines.rate / 3600
    scoring = corpus.pages * seconds_of_page(corpus, progress) / 3600
    store = f"{corpus.pages * corpus.page_bytes / 1e9:,.0f} GB"
    return [
        _row("encode", encoding, machines.devices, "device", machines.device_price, store),
        _row("prune, score", scoring, machines.cores, "core", machines.core_price, "reads the store"),
    ]


def _row(stage: str, hours: float, hands: int, kind: str, price: float, disk: str) -> dict[str, Any]:
    return {
        "stage": stage,
        "hours": round(hours / hands, 2),
        "on": f"{hands} {kind}" + "s" * (hands > 1),
        "device_hours": round(hours, 1),
        "cost": round(hours * price, 2),
        "disk": disk,
    }


def seconds_of_page(corpus: Corpus, progress: Progress) -> float:
    """CPU seconds of one core to prune a page by all methods at all budgets, and to score it against all queries."""
    store: Any = MadeUpStore(TIMED_PAGES, corpus.queries, grid=corpus.grid)
    methods = [replace(method, trials=1) for method in choose_methods(METHODS, None)]
    with one_thread(), progress("prune and score some pages", total=TIMED_PAGES, done=0) as advance:
        job = Job(store, tuple(methods), BUDGETS, 42, load_queries(store, range(corpus.queries)), {})
        score_pages(job, [0])  # compiles
        begun = time.process_time()
        for page in range(TIMED_PAGES):
            score_pages(job, [page])
            advance(1)
        return (time.process_time() - begun) / TIMED_PAGES
