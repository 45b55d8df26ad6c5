"""Pages pruned by every method at all budgets, and how that goes from one process to another.

A method that fails on a page is out for the data set, with its reason; the others go on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from harness.evaluation.methods import Method
from harness.scoring.queries import QueryTiles
from harness.store.reader import Store
from pruners import Merged, Page, Subset, prune
from pruners.core.errors import PrunerError
from pruners.core.groups import Groups

INDEX_BITS = 16  # of one number in an index: float16
VISUAL, NATIVE = "visual", "native"
"""What is indexed: visual tokens only; or prompt and special tokens too, as the stock retriever does, never pruned."""


@dataclass(frozen=True)
class Job:
    """All that a worker needs. Workers are forked and inherit it, so methods from a user's file need no pickling."""

    store: Store
    methods: tuple[Method, ...]
    budgets: tuple[float, ...]
    seed: int
    queries: QueryTiles
    gold: dict[int, list[int]]
    """page -> its gold queries, for diagnostics only."""
    profile: str = VISUAL


@dataclass(frozen=True)
class PrunedPage:
    """What all methods made of a page: results, and which cells (methods x trials x budgets) they fill."""

    results: list[Subset | Merged]
    rows: list[int]
    vectors: np.ndarray
    bits: np.ndarray
    seconds: np.ndarray  # by method
    failures: dict[str, str]

    @classmethod
    def nothing(cls, cells: int, methods: int) -> PrunedPage:
        return cls([], [], np.zeros(cells, np.int64), np.zeros(cells, np.int64), np.zeros(methods), {})

    def add(self, job: Job, i: int, method: Method, cell: int, page: Page, index: int) -> None:
        """Run a method, whose cells begin at `cell`."""
        queries = None
        if method.diagnostic:
            queries = [job.store.query(query) for query in job.gold.get(index, [])]
        budgets = method.budgets(job.budgets)
        start = time.process_time()  # of this process, which has one thread: other work on the machine does not count
        for trial in range(method.trials):
            try:
                result = prune(method.pruner, page, budgets, seed=job.seed, trial=trial, queries=queries)
            except PrunerError as error:
                self.failures[method.text] = str(error)
            else:
                span = slice(cell, cell + len(budgets))
                self.vectors[span], self.bits[span] = _stored(result, page.vectors.shape[1])
                self.results.append(result)
                self.rows.extend(range(span.start, span.stop))
            cell += len(budgets)
        self.seconds[i] = time.process_time() - start


def prune_pages(job: Job, indices: Sequence[int]) -> list[tuple[Page, PrunedPage]]:
    """Pages of the store, each with what every method made of it."""
    indices = [int(index) for index in indices]  # from an array they are numbers of numpy's
    pages = [job.store.page(index) for index in indices]
    cells = sum(method.trials * len(method.budgets(job.budgets)) for method in job.methods)
    pruned = [PrunedPage.nothing(cells, len(job.methods)) for _ in pages]
    cell = 0
    for i, method in enumerate(job.methods):
        for p, index in enumerate(indices):
            pruned[p].add(job, i, method, cell, pages[p], index)
            if method.text in pruned[p].failures and pages[p].fingerprint() != pages[p].original:
                pages[p] = job.store.page(index)  # it wrote into the page, which the next method must not see
        cell += method.trials * len(method.budgets(job.budgets))
    return list(zip(pages, pruned, strict=True))


def pack(pruned: PrunedPage) -> tuple[PrunedPage, list[Any]]:
    """The same in plain arrays, which go from process to process as bytes: tensors would go as open files, and groups
    with the page that they are of.
    """
    return replace(pruned, results=[]), [_pack_result(result) for result in pruned.results]


def unpack(packed: tuple[PrunedPage, list[Any]], page: Page) -> PrunedPage:
    pruned, results = packed
    return replace(pruned, results=[_unpack_result(result, page) for result in results])


def _pack_result(result: Subset | Merged) -> Any:
    if isinstance(result, Subset):
        return result
    parts = [(part.labels, part.scales) if isinstance(part, Groups) else part.numpy() for part in result.parts]
    return parts, result.bits_per_vector


def _unpack_result(packed: Any, page: Page) -> Subset | Merged:
    if isinstance(packed, Subset):
        return packed
    parts, bits = packed
    made = (Groups(page.vectors, *part) if isinstance(part, tuple) else torch.from_numpy(part) for part in parts)
    return Merged(tuple(made), bits)


def _stored(result: Subset | Merged, dim: int) -> tuple[list[int], list[int]]:
    """Vectors that budgets keep of a page, and the bits an index needs for them."""
    if isinstance(result, Subset):
        counts = list(result.counts)
        return counts, [count * dim * INDEX_BITS for count in counts]
    counts = [len(part) for part in result.parts]
    return counts, [count * (result.bits_per_vector or dim * INDEX_BITS) for count in counts]
