"""Pages pruned by every method at all budgets, and how that goes from one process to another.

A method that fails on a page is out for the data set, with its reason; the others go on. Methods that differ in their
codec alone share a pruning.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from harness.evaluation.index_size import FLOAT16, vector_bits
from harness.evaluation.methods import Method
from harness.scoring.queries import QueryTiles
from harness.store.reader import Store
from pruners import Codec, Merged, Page, Subset, prune
from pruners.core.errors import PrunerError
from pruners.core.groups import Groups
from pruners.guests.guest import seconds_of_guests

VISUAL, NATIVE = "visual", "native"
"""What is indexed: visual tokens only; or prompt and special tokens too, as the stock retriever does, never pruned."""


@dataclass(frozen=True)
class Job:
    """All that a worker needs."""

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
class PrunedPage:
    """What all methods made of a page: by codec the results, and which cells they fill."""

    results: dict[str, list[Subset | Merged]]
    rows: dict[str, list[int]]
    vectors: np.ndarray
    bits: np.ndarray
    seconds: np.ndarray
    failures: dict[str, str]

    @classmethod
    def nothing(cls, cells: int, methods: int) -> PrunedPage:
        return cls({}, {}, np.zeros(cells, np.int64), np.zeros(cells, np.int64), np.zeros(methods), {})

    def add(self, job: Job, family: Sequence[tuple[int, int, Method]], page: Page, index: int) -> None:
        """Run methods that share a pruning: see `Job.prunings`."""
        method, queries = family[0][2], None
        if method.diagnostic:
            queries = [job.store.query(query) for query in job.gold.get(index, [])]
        budgets = method.budgets(job.budgets)
        start = _cpu_seconds()
        for trial in range(method.trials):
            try:
                result = prune(method.pruner, page, budgets, seed=job.seed, trial=trial, queries=queries)
            except PrunerError as error:
                self.failures.update((other.text, str(error)) for _, _, other in family)
            else:
                for _, cell, other in family:
                    self._store(result, other.codec, cell + trial * len(budgets), page.vectors.shape[1])
        self.seconds[[i for i, _, _ in family]] = _cpu_seconds() - start

    def _store(self, result: Subset | Merged, codec: Codec, cell: int, dim: int) -> None:
        """Count what a codec stores of a result, whose cells begin at `cell`, and leave it to be scored."""
        counts = np.array(result.counts if isinstance(result, Subset) else [len(part) for part in result.parts])
        span = slice(cell, cell + len(counts))
        own_bits = None if isinstance(result, Subset) else result.bits_per_vector
        self.vectors[span], self.bits[span] = counts, vector_bits(counts, dim, codec, own_bits)
        self.results.setdefault(str(codec), []).append(result)
        self.rows.setdefault(str(codec), []).extend(range(span.start, span.stop))


def prune_pages(job: Job, indices: Sequence[int]) -> list[tuple[Page, PrunedPage]]:
    """Pages of the store, each with what every method made of it."""
    indices = [int(index) for index in indices]  # from an array they are numbers of numpy's
    pages = [job.store.page(index) for index in indices]
    cells = sum(method.trials * len(method.budgets(job.budgets)) for method in job.methods)
    pruned = [PrunedPage.nothing(cells, len(job.methods)) for _ in pages]
    for family in job.prunings:
        for p, index in enumerate(indices):
            pruned[p].add(job, family, pages[p], index)
            if family[0][2].text in pruned[p].failures and pages[p].fingerprint() != pages[p].original:
                pages[p] = job.store.page(index)  # it wrote into the page, which the next method must not see
    return list(zip(pages, pruned, strict=True))


def pack(pruned: PrunedPage) -> tuple[PrunedPage, dict[str, list[Any]]]:
    """The same in plain arrays, which go from process to process as bytes: tensors would go as open files, and groups
    with the page that they are of.
    """
    once = {id(result): _pack_result(result) for results in pruned.results.values() for result in results}
    packed = {codec: [once[id(result)] for result in results] for codec, results in pruned.results.items()}
    return replace(pruned, results={}), packed


def unpack(packed: tuple[PrunedPage, dict[str, list[Any]]], page: Page) -> PrunedPage:
    pruned, by_codec = packed
    results = {codec: [_unpack_result(result, page) for result in results] for codec, results in by_codec.items()}
    return replace(pruned, results=results)


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


def _cpu_seconds() -> float:
    """Of this process, which has one thread, and of guests that work for it: other work on the machine is not in it."""
    return time.process_time() + seconds_of_guests()
