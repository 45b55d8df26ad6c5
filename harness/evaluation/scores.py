"""Scores of pages: each pruned by every method at all budgets and scored against all queries, in one pass.

Pages are independent of each other. A method that fails on a page is out for the data set, with its reason; the others
go on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from harness.backbones.base import choose_device
from harness.evaluation.methods import Method
from harness.metrics.ranking import Evaluator
from harness.scoring.queries import QueryTiles, tile_queries, tile_tokens
from harness.scoring.sweep import score_page
from harness.scoring.torch_sweep import GPU_TILE_TOKENS
from harness.store.reader import Store
from pruners import Merged, Page, Subset, prune
from pruners.core.errors import PrunerError
from pruners.core.groups import Groups
from pruners.guests.guest import seconds_of_guests

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
class PageScores:
    """One page. Cells are methods x trials x budgets; `scores [1 + cells, queries]`, the full page first."""

    scores: np.ndarray
    vectors: np.ndarray
    bits: np.ndarray
    seconds: np.ndarray  # by method
    failures: dict[str, str]
    full_vectors: int
    prompt_vectors: int
    """Indexed beside them, and never pruned: none under profile `visual`."""


def score_pages(job: Job, indices: Sequence[int]) -> list[PageScores]:
    """Prune pages with every method and score what is left."""
    pages = [job.store.page(index) for index in indices]
    cells = sum(method.trials * len(method.budgets(job.budgets)) for method in job.methods)
    pruned = [_Pruned.nothing(cells, len(job.methods)) for _ in pages]
    cell = 0
    for i, method in enumerate(job.methods):
        for p, index in enumerate(indices):
            pruned[p].add(job, i, method, cell, pages[p], index)
            if method.text in pruned[p].failures and pages[p].fingerprint() != pages[p].original:
                pages[p] = job.store.page(index)  # it wrote into the page, which the next method must not see
        cell += method.trials * len(method.budgets(job.budgets))
    return [_score(job, *each) for each in zip(indices, pages, pruned, strict=True)]


@dataclass(frozen=True)
class _Pruned:
    """What all methods made of a page: results, and which cells they fill."""

    results: list[Subset | Merged]
    rows: list[int]
    vectors: np.ndarray
    bits: np.ndarray
    seconds: np.ndarray
    failures: dict[str, str]

    @classmethod
    def nothing(cls, cells: int, methods: int) -> _Pruned:
        return cls([], [], np.zeros(cells, np.int64), np.zeros(cells, np.int64), np.zeros(methods), {})

    def add(self, job: Job, i: int, method: Method, cell: int, page: Page, index: int) -> None:
        """Run a method, whose cells begin at `cell`."""
        queries = None
        if method.diagnostic:
            queries = [job.store.query(query) for query in job.gold.get(index, [])]
        budgets = method.budgets(job.budgets)
        start = _cpu_seconds()
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
        self.seconds[i] = _cpu_seconds() - start


def _cpu_seconds() -> float:
    """Of this process, which has one thread, and of guests that work for it: other work on the machine is not in it."""
    return time.process_time() + seconds_of_guests()


def _score(job: Job, index: int, page: Page, pruned: _Pruned) -> PageScores:
    indexed, prompt, results, bits = page.vectors, page.vectors[:0], pruned.results, pruned.bits
    if job.profile == NATIVE:
        prompt = job.store.prompt(index)
        indexed = torch.cat([indexed, prompt])
        results = [_with_prompt(result, indexed, prompt) for result in results]
        bits = bits + prompt.numel() * INDEX_BITS
    scores = np.full((1 + len(bits), len(job.queries)), np.nan, np.float32)
    scores[[0, *(1 + row for row in pruned.rows)]] = score_page(indexed, results, job.queries)
    return PageScores(scores, pruned.vectors, bits, pruned.seconds, pruned.failures, len(page), len(prompt))


def _with_prompt(result: Subset | Merged, indexed: torch.Tensor, prompt: torch.Tensor) -> Subset | Merged:
    """A result with the page's prompt vectors, the last of those indexed, kept at every budget."""
    if isinstance(result, Merged):
        parts = (
            part.with_singles(indexed) if isinstance(part, Groups) else torch.cat([part, prompt])
            for part in result.parts
        )
        return replace(result, parts=tuple(parts))
    order = np.concatenate([np.arange(len(indexed) - len(prompt), len(indexed)), result.order])
    return Subset(order, tuple(count + len(prompt) for count in result.counts))


def gold_queries(evaluate: Evaluator) -> dict[int, list[int]]:
    """page -> the queries to which it is relevant."""
    gold: dict[int, list[int]] = {}
    judged = evaluate.judged
    for query, page in zip(judged.rows[evaluate.gold].tolist(), judged.pages[evaluate.gold].tolist(), strict=True):
        gold.setdefault(page, []).append(query)
    return gold


def load_queries(store: Store, indices: Sequence[int], device: str | None = "cpu") -> QueryTiles:
    """The queries of a store where they are scored: on a GPU if there is one and no other device was asked for."""
    queries = [store.query(index) for index in indices]
    chosen = choose_device(device)
    if chosen.type == "cuda":
        return tile_queries(queries, GPU_TILE_TOKENS, chosen)
    return tile_queries(queries, tile_tokens(store.mean_vectors))


def _stored(result: Subset | Merged, dim: int) -> tuple[list[int], list[int]]:
    """Vectors that budgets keep of a page, and the bits an index needs for them."""
    if isinstance(result, Subset):
        counts = list(result.counts)
        return counts, [count * dim * INDEX_BITS for count in counts]
    counts = [len(part) for part in result.parts]
    return counts, [count * (result.bits_per_vector or dim * INDEX_BITS) for count in counts]
