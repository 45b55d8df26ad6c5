"""A data set pruned and scored by all methods at once, with nothing kept of a page but counts.

Figures depend on the scores and ranks of the judged pages alone. So those are scored first, by a first set of workers;
then every other page only adds to counts of who stands above them. Memory is cells x queries x (judged pages + 10),
whatever the corpus, and counts are the same whatever the workers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.evaluation.methods import Method
from harness.evaluation.pruned_pages import Job
from harness.evaluation.scores import PageScores, spread_scores
from harness.metrics.ranking import DEPTH, TOP, Evaluator
from harness.metrics.ranks import RankCounts

TOGETHER = 32  # pages that a method prunes in a row: its code and tables are then in the cache (a seventh faster)
AT_THE_END = 8  # the same for a data set's last pages, so that no worker waits long for another
HELD = 2 * 2**30
"""Bytes of judged pages' scores that are held; where there would be more, those pages are scored a second time."""


@dataclass(frozen=True)
class PageFacts:
    """Of some pages all that is known beside their scores; cells are methods x trials x budgets."""

    pages: np.ndarray
    vectors: np.ndarray
    """Kept at each cell, `[cells, pages]`."""
    bits: np.ndarray
    """Of the index at each cell, these pages together."""
    seconds: np.ndarray
    """By method."""
    full_vectors: np.ndarray
    prompt_vectors: int
    failures: dict[str, str]

    @classmethod
    def of(cls, indices: Sequence[int], scored: Sequence[PageScores]) -> PageFacts:
        failures: dict[str, str] = {}
        for page in scored:
            failures = {**page.failures, **failures}  # the first page's reason stays
        return cls(
            np.array(indices, np.int64),
            np.stack([page.vectors for page in scored], axis=-1),
            np.sum([page.bits for page in scored], axis=0),
            np.sum([page.seconds for page in scored], axis=0),
            np.array([page.full_vectors for page in scored]),
            sum(page.prompt_vectors for page in scored),
            failures,
        )


@dataclass
class Tally:
    """A data set's counts. Cell 0 of `counts` and `known` is the full model, the others are the methods' in order."""

    methods: Sequence[Method]
    budgets: tuple[float, ...]
    evaluate: Evaluator
    known: np.ndarray
    """Scores of the judged pages, `[1 + cells, pairs]`."""
    counts: RankCounts
    vectors: np.ndarray
    """Kept of each page, `[cells, pages]`."""
    full_vectors: np.ndarray
    bits: np.ndarray
    seconds: np.ndarray
    prompt_vectors: int = 0
    """Of all pages, indexed beside what a method keeps."""
    failures: dict[str, str] = field(default_factory=dict)

    @classmethod
    def begin(cls, methods: Sequence[Method], budgets: tuple[float, ...], evaluate: Evaluator) -> Tally:
        """Nothing counted yet."""
        cells, pages = sum(len(m.budgets(budgets)) * m.trials for m in methods), len(evaluate.by_id)
        return cls(
            methods,
            budgets,
            evaluate,
            np.full((1 + cells, len(evaluate.judged.rows)), np.nan, np.float32),
            RankCounts.none(evaluate.judged, 1 + cells, TOP),
            np.zeros((cells, pages), np.int32),
            np.zeros(pages, np.int32),
            np.zeros(cells, np.int64),
            np.zeros(len(methods)),
        )

    def add(self, facts: PageFacts) -> None:
        self.vectors[:, facts.pages] = facts.vectors
        self.full_vectors[facts.pages] = facts.full_vectors
        self.bits += facts.bits
        self.seconds += facts.seconds
        self.prompt_vectors += facts.prompt_vectors
        self.failures = {**facts.failures, **self.failures}

    def count(self, scored: Sequence[PageScores], pages: Sequence[int]) -> RankCounts:
        """The counts of some pages."""
        counts = RankCounts.none(self.evaluate.judged, len(self.known), TOP)
        columns = np.stack([page.scores for page in scored])
        counts.count(self.evaluate.judged, self.known, columns, np.array(pages))
        return counts

    @property
    def milliseconds(self) -> dict[str, float]:
        """Of pruning a page, all budgets of a trial, by method."""
        pages = len(self.full_vectors)
        return {
            method.text: 1000 * float(spent) / pages / method.trials
            for method, spent in zip(self.methods, self.seconds, strict=True)
            if method.text not in self.failures
        }

    def cells(self, method: Method | None) -> np.ndarray:
        """The cells `[trials, budgets]` of a method; None: of the full model."""
        if method is None:
            return np.zeros((1, 1), int)
        start = 1
        for other in self.methods:
            shape = other.trials, len(other.budgets(self.budgets))
            if other.text == method.text:
                return start + np.arange(shape[0] * shape[1]).reshape(shape)
            start += shape[0] * shape[1]
        raise KeyError(method.text)

    def ranks(self, cells: np.ndarray) -> np.ndarray:
        """Of the judged pages, `[*cells, pairs]`."""
        return self.counts.ranks(self.evaluate.judged, DEPTH, cells)

    def best(self, cells: np.ndarray) -> np.ndarray:
        """The best pages of each query, `[*cells, queries, 10]`."""
        return self.evaluate.by_id[self.counts.best[cells]]


def tally(job: Job, evaluate: Evaluator, workers: int, advance: Callable[[int], None]) -> Tally:
    """Prune, score and count all pages of a store."""
    found = Tally.begin(job.methods, job.budgets, evaluate)
    together = AT_THE_END if job.queries.on_gpu else TOGETHER  # what workers send from process to process is held
    judged = np.unique(evaluate.judged.pages[evaluate.judged.pages >= 0]).tolist()
    hold = len(judged) * len(found.known) * len(job.queries) * 4 <= HELD
    held: list[PageScores] = []
    with spread_scores(job, portions(judged, together), workers) as results:
        for page, scored in zip(judged, itertools.chain.from_iterable(results), strict=True):
            evaluate.judged.scores(scored.scores, page, found.known)
            if hold:
                held.append(scored)
                advance(1)
    for portion in portions(range(len(held))):
        pages, columns = [judged[i] for i in portion], [held[i] for i in portion]
        found.counts.add(found.count(columns, pages))
        found.add(PageFacts.of(pages, columns))
    held.clear()

    def count(pages: Sequence[int], scored: Sequence[PageScores]) -> tuple[RankCounts, PageFacts]:
        return found.count(scored, pages), PageFacts.of(pages, scored)

    rest = np.setdiff1d(np.arange(len(job.store), dtype=np.int32), judged if hold else [], assume_unique=True)
    with spread_scores(job, portions(rest, together), workers, count, first_here=not judged) as parts:
        for counts, facts in parts:
            found.counts.add(counts)
            found.add(facts)
            advance(len(facts.pages))
    return found


def portions(pages: Any, together: int = TOGETHER) -> list[Any]:
    """Slices of a sequence of pages.

    A single page first: it is pruned in this process, which a method that ends its process should not take along.
    """
    found, at = [pages[:1]] if len(pages) else [], 1
    while at < len(pages):
        size = together if len(pages) - at > together else AT_THE_END
        found.append(pages[at : at + size])
        at += size
    return found
