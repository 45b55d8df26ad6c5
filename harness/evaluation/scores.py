"""Scores of pages: each pruned by every method at all budgets and scored against all queries, in one pass.

Pages are independent of each other. A codec's subsets share the page as it is decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from harness.backbones.base import choose_device
from harness.engine.engine import PROCESSES, WorkEngine, workers_here
from harness.evaluation.index_size import FLOAT16, vector_bits
from harness.evaluation.pruned_pages import NATIVE, Job, PrunedPage, pack, prune_pages, unpack
from harness.evaluation.shared_store import SharedStore
from harness.metrics.ranking import Evaluator
from harness.scoring.queries import QueryTiles, tile_queries, tile_tokens
from harness.scoring.sweep import score_page
from harness.scoring.torch_sweep import GPU_TILE_TOKENS
from harness.store.reader import Store
from pruners import Codec, Merged, Page, Subset
from pruners.core.errors import PruneBoardError
from pruners.core.groups import Groups

TOGETHER = 32  # pages that a method prunes in a row: its code and tables are then in the cache (a seventh faster)


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


Lots = Iterable[tuple[Sequence[int], list[PageScores]]]
"""Pages a few at a time, with their scores."""


def in_a_row(lots: Lots) -> list[PageScores]:
    return [page for _, scored in lots for page in scored]


@dataclass(frozen=True)
class Scoring:
    """What a worker does with a portion of pages. A forked worker inherits it; to another machine go names."""

    job: Job
    then: Callable[[Lots], Any]

    def __call__(self, pages: Sequence[int]) -> Any:
        lots = ([int(page) for page in pages[at : at + TOGETHER]] for at in range(0, len(pages), TOGETHER))
        return self.then((some, score_pages(self.job, some)) for some in lots)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pages and queries are read from the store where it is worked on."""
        job = self.job
        return _received, (
            SharedStore.of(job.store),
            job.methods,
            job.budgets,
            job.seed,
            job.gold,
            job.profile,
            self.then,
        )


def _received(sent: Any, methods: Any, budgets: Any, seed: int, gold: Any, profile: str, then: Any) -> Scoring:
    store = SharedStore.open(sent)
    queries = load_queries(store, range(len(store.query_ids)))
    return Scoring(Job(store, methods, budgets, seed, queries, gold, profile), then)


@contextmanager
def spread_scores(
    job: Job,
    portions: Sequence[Sequence[int]],
    workers: int,
    then: Callable[[Lots], Any] = in_a_row,
    *,
    engine: WorkEngine = PROCESSES,
    ordered: bool = True,
) -> Iterator[Iterator[Any]]:
    """Portions of pages, pruned by workers and scored; `then` makes of each what is wanted, where it was scored.

    Beside a GPU workers only prune, because a forked process cannot use its parent's: this one scores what they send.
    """
    if not job.queries.on_gpu:
        work = Scoring(job, then)
        with engine.spread(work, portions, workers, ordered=ordered) as results:
            yield results
        return

    def prune(pages: Sequence[int]) -> list[Any]:
        return [pack(pruned) for _, pruned in prune_pages(job, pages)]

    def score(indices: Sequence[int], packed: list[Any]) -> list[PageScores]:
        pages = [job.store.page(index) for index in indices]
        try:
            return [
                _score(job, i, page, unpack(one, page)) for i, page, one in zip(indices, pages, packed, strict=True)
            ]
        except torch.OutOfMemoryError as error:
            raise PruneBoardError(
                f"the GPU's memory does not hold the scores of {pages[0].id!r} or a page after it against "
                f"{len(job.queries)} queries: score on cores with --device cpu. What was finished is kept"
            ) from error

    with PROCESSES.spread(prune, portions, workers_here(engine, workers)) as results:
        yield (then([(pages, score(pages, packed))]) for pages, packed in zip(portions, results, strict=True))


def score_pages(job: Job, indices: Sequence[int]) -> list[PageScores]:
    """Prune pages with every method and score what is left."""
    return [_score(job, i, *each) for i, each in zip(indices, prune_pages(job, indices), strict=True)]


def _score(job: Job, index: int, page: Page, pruned: PrunedPage) -> PageScores:
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
            try:
                held, whole = [held_as(result, codec) for result in results], codec.stored(indexed)
            except PruneBoardError as error:  # these are out, the others go on
                why = f"page {page.id!r}: {error}"
                pruned.failures.update((method.text, why) for method in job.methods if method.codec_text == text)
            else:
                scores[[1 + row for row in rows]] = score_page(whole, held, job.asked[text])[1:]
    return PageScores(scores, pruned.vectors, bits, pruned.seconds, pruned.failures, len(page), len(prompt))


def held_as(result: Subset | Merged, codec: Codec) -> Subset | Merged:
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
