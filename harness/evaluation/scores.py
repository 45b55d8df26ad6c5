"""Scores of pages: each pruned by every method at all budgets and scored against all queries, in one pass.

Pages are independent of each other. A method that fails on a page is out for the data set, with its reason; the others
go on. Methods that differ in their codec alone share a pruning; a codec's subsets share the page as it is decoded.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

from harness.backbones.base import choose_device
from harness.evaluation.index_size import FLOAT16, vector_bits
from harness.evaluation.methods import Method
from harness.metrics.ranking import Evaluator
from harness.scoring.queries import QueryTiles, tile_queries, tile_tokens
from harness.scoring.sweep import score_page
from harness.scoring.torch_sweep import GPU_TILE_TOKENS
from harness.store.reader import Store
from pruners import Codec, Merged, Page, Subset, prune
from pruners.core.errors import PrunerError
from pruners.core.groups import Groups

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

    @cached_property
    def codecs(self) -> dict[str, Codec]:
        """Those of its methods, by their text: float16 is always one, which the full model is stored in."""
        return {str(FLOAT16): FLOAT16, **{method.codec_text: method.codec for method in self.methods}}

    @cached_property
    def asked(self) -> dict[str, QueryTiles]:
        """The queries as each codec compares them."""
        return {
            text: self.queries.changed(codec.query) if codec.changes_queries else self.queries
            for text, codec in self.codecs.items()
        }

    @cached_property
    def prunings(self) -> list[list[tuple[int, int, Method]]]:
        """Methods that share a pruning, side by side: the number of each, where its cells begin, and itself."""
        found: list[list[tuple[int, int, Method]]] = []
        cell = 0
        for i, method in enumerate(self.methods):
            same = next((family for family in found if family[0][2].pruned_as(method)), None)
            if same is None:
                found.append(same := [])
            same.append((i, cell, method))
            cell += method.trials * len(method.budgets(self.budgets))
        return found


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
    for family in job.prunings:
        for p, index in enumerate(indices):
            pruned[p].add(job, family, pages[p], index)
            if family[0][2].text in pruned[p].failures and pages[p].fingerprint() != pages[p].original:
                pages[p] = job.store.page(index)  # it wrote into the page, which the next method must not see
    return [_score(job, *each) for each in zip(indices, pages, pruned, strict=True)]


@dataclass(frozen=True)
class _Pruned:
    """What all methods made of a page: by codec the results, and which cells they fill."""

    results: dict[str, list[Subset | Merged]]
    rows: dict[str, list[int]]
    vectors: np.ndarray
    bits: np.ndarray
    seconds: np.ndarray
    failures: dict[str, str]

    @classmethod
    def nothing(cls, cells: int, methods: int) -> _Pruned:
        return cls({}, {}, np.zeros(cells, np.int64), np.zeros(cells, np.int64), np.zeros(methods), {})

    def add(self, job: Job, family: Sequence[tuple[int, int, Method]], page: Page, index: int) -> None:
        """Run methods that share a pruning: see `Job.prunings`."""
        method, queries = family[0][2], None
        if method.diagnostic:
            queries = [job.store.query(query) for query in job.gold.get(index, [])]
        budgets = method.budgets(job.budgets)
        start = time.process_time()  # of this process, which has one thread: other work on the machine does not count
        for trial in range(method.trials):
            try:
                result = prune(method.pruner, page, budgets, seed=job.seed, trial=trial, queries=queries)
            except PrunerError as error:
                self.failures.update((other.text, str(error)) for _, _, other in family)
            else:
                for _, cell, other in family:
                    self._store(result, other.codec, cell + trial * len(budgets), page.vectors.shape[1])
        self.seconds[[i for i, _, _ in family]] = time.process_time() - start

    def _store(self, result: Subset | Merged, codec: Codec, cell: int, dim: int) -> None:
        """Count what a codec stores of a result, whose cells begin at `cell`, and leave it to be scored."""
        counts = np.array(result.counts if isinstance(result, Subset) else [len(part) for part in result.parts])
        span = slice(cell, cell + len(counts))
        own_bits = None if isinstance(result, Subset) else result.bits_per_vector
        self.vectors[span], self.bits[span] = counts, vector_bits(counts, dim, codec, own_bits)
        self.results.setdefault(str(codec), []).append(result)
        self.rows.setdefault(str(codec), []).extend(range(span.start, span.stop))


def _score(job: Job, index: int, page: Page, pruned: _Pruned) -> PageScores:
    indexed, prompt, bits = page.vectors, page.vectors[:0], pruned.bits.copy()
    if job.profile == NATIVE:
        prompt = job.store.prompt(index)
        indexed = torch.cat([indexed, prompt])
    scores = np.full((1 + len(bits), len(job.queries)), np.nan, np.float32)
    for text, codec in job.codecs.items():
        results, rows = pruned.results.get(text, []), pruned.rows.get(text, [])
        if len(prompt):  # kept at every budget, and stored by the codec too
            results = [_with_prompt(result, indexed, prompt) for result in results]
            bits[rows] += vector_bits(len(prompt), prompt.shape[1], codec)
        if codec == FLOAT16:  # vectors as the store holds them
            scores[[0, *(1 + row for row in rows)]] = score_page(indexed, results, job.queries)
        elif results:
            held = [_held(result, codec) for result in results]
            scores[[1 + row for row in rows]] = score_page(codec.stored(indexed), held, job.asked[text])[1:]
    return PageScores(scores, pruned.vectors, bits, pruned.seconds, pruned.failures, len(page), len(prompt))


def _held(result: Subset | Merged, codec: Codec) -> Subset | Merged:
    """A result as its index holds it: merged vectors are stored one by one, kept ones are the page's own."""
    if isinstance(result, Subset):
        return result
    return Merged(tuple(codec.stored(vectors) for vectors in result.vectors))


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
