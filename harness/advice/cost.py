"""What a choice costs on a corpus: index, memory, pruning, and a query's scan at the rate of this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from harness.advice.rule import GB, Candidate, size_of

QUERY_VECTORS = 32
"""Of the query whose scan is timed: what ColBERT and its successors pad to, about."""
PAGE_VECTORS = 50
NUMBERS = 2**23
"""Of the page vectors that are scanned: 32 MB, more than a cache holds, whatever the dimension."""
ROUNDS = 5
SEED = 42
FLOAT32 = 4


@dataclass(frozen=True)
class ScanRate:
    """Exact MaxSim in float32, one query at a time, as numpy does it on this machine, with all its threads."""

    dim: int
    query_vectors: int
    ns_per_vector: float
    """Nanoseconds for one page vector against all of a query's."""

    @property
    def words(self) -> str:
        shape = f"{self.query_vectors} query vectors of {self.dim} dimensions"
        rate = f"{float(f'{self.ns_per_vector:.3g}'):,g} ns a page vector"
        return f"{rate}, float32 MaxSim, {shape}, measured on this machine now"


@dataclass(frozen=True)
class Cost:
    """Of a corpus. None is what is not known."""

    index_gb: float
    decoded_gb: float | None
    """The same vectors as float32, which is what an exact scan computes with."""
    prune_cpu_hours: float | None
    """At the time a page took where it was measured, all budgets of that run together."""
    scan_ms: float | None


@cache
def measure_rate(dim: int) -> ScanRate:
    """A short product, best of a few: some tenths of a second."""
    rng = np.random.default_rng(SEED)
    pages = max(1, NUMBERS // (dim * PAGE_VECTORS))
    vectors = rng.standard_normal((pages * PAGE_VECTORS, dim), dtype=np.float32)
    query = rng.standard_normal((dim, QUERY_VECTORS), dtype=np.float32)
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        (vectors @ query).reshape(pages, PAGE_VECTORS, QUERY_VECTORS).max(1).sum(1)
        best = min(best, time.perf_counter() - start)
    return ScanRate(dim, QUERY_VECTORS, 1e9 * best / len(vectors))


Rates = Callable[[int], ScanRate]
"""The rate at each width of vectors."""


def with_scan_time(candidate: Candidate, rates: Rates | None, pages: float) -> Candidate:
    """The candidate with what scoring `pages` pages for one query is expected to take."""
    if rates is None or candidate.vectors_per_page is None or candidate.width is None:
        return candidate
    each = rates(candidate.width).ns_per_vector
    return replace(candidate, scan_ms=pages * candidate.vectors_per_page * each / 1e6)


def cost_of(candidate: Candidate, pages: float) -> Cost | None:
    """None where its bytes are not known, as of a paper's figures."""
    if candidate.own_bytes is None:
        return None
    vectors, width = candidate.vectors_per_page, candidate.width
    decoded = None if vectors is None or width is None else pages * vectors * width * FLOAT32 / GB
    hours = None if candidate.prune_ms is None else pages * candidate.prune_ms / 3.6e6
    return Cost(size_of(candidate, pages) / GB, decoded, hours, candidate.scan_ms)
