"""A data set pruned and scored by all methods at once, with nothing kept of a page but counts.

Figures depend on the scores and ranks of the judged pages alone. So those are scored first, by a first set of workers;
then every other page only adds to counts of who stands above them. Memory is cells x queries x (judged pages + 10),
whatever the corpus, and counts are the same whatever the workers.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from harness.engine.engine import PROCESSES, WorkEngine
from harness.evaluation.kept_counts import KeptCounts
from harness.evaluation.methods import Method
from harness.evaluation.pruned_pages import Job
from harness.evaluation.scores import TOGETHER, Lots, PageScores, spread_scores
from harness.evaluation.scoring_state import ScoringState
from harness.metrics.ranking import DEPTH, TOP, Evaluator
from harness.metrics.ranks import JudgedPairs, RankCounts

AT_THE_END = 8  # the same for a data set's last pages, so that no worker waits long for another
BLOCK = 512  # pages at most whose counts a worker adds up before it sends them: counts are large, however few the pages
HELD = 2 * 2**30
"""Bytes of judged pages' scores that are held; where there would be more, those pages are scored a second time."""


@dataclass(frozen=True)
class PageFacts:
    """Of some pages all that is known beside their scores; cells are methods x trials x budgets."""

    pages: np.ndarray
    vectors: np.ndarray
    """Of the full page, and kept at each cell: `[1 + cells, pages]`."""
    bits: np.ndarray
    """Of the index at each cell, these pages together."""
    seconds: np.ndarray
    """By method."""
    prompt_vectors: int
    failures: dict[str, tuple[int, str]]
    """Methods that failed: on which page first, and why."""

    @classmethod
    def of(cls, indices: Sequence[int], scored: Sequence[PageScores]) -> PageFacts:
        return cls(
            np.array(indices, np.int64),
            np.stack([[page.full_vectors, *page.vectors] for page in scored], axis=-1),
            np.sum([page.bits for page in scored], axis=0),
            np.sum([page.seconds for page in scored], axis=0),
            sum(page.prompt_vectors for page in scored),
            _earliest(
                {text: (i, why) for text, why in p.failures.items()} for i, p in zip(indices, scored, strict=True)
            ),
        )

    @classmethod
    def together(cls, parts: Sequence[PageFacts]) -> PageFacts:
        """Of several lots of pages."""
        return cls(
            np.concatenate([part.pages for part in parts]),
            np.concatenate([part.vectors for part in parts], axis=-1),
            np.sum([part.bits for part in parts], axis=0),
            np.sum([part.seconds for part in parts], axis=0),
            sum(part.prompt_vectors for part in parts),
            _earliest(part.failures for part in parts),
        )


def _earliest(failures: Iterable[Mapping[str, tuple[int, str]]]) -> dict[str, tuple[int, str]]:
    """The first page on which each method failed, whoever met it first."""
    found: dict[str, tuple[int, str]] = {}
    for some in failures:
        found |= {text: min(why, found.get(text, why)) for text, why in some.items()}
    return found


@dataclass
class Tally:
    """A data set's counts. Cell 0 is the full model, the others are the methods' in order."""

    methods: Sequence[Method]
    budgets: tuple[float, ...]
    evaluate: Evaluator
    known: np.ndarray
    """Scores of the judged pages, `[1 + cells, pairs]`."""
    counts: RankCounts
    kept: KeptCounts
    """Vectors of each page at each cell."""
    vectors: np.ndarray
    """Of all pages, at each cell."""
    bits: np.ndarray
    """The same in bits, at each cell but the first."""
    seconds: np.ndarray
    """Of pruning, by method."""
    prompt_vectors: int = 0
    """Of all pages, indexed beside what a method keeps."""
    failed: dict[str, tuple[int, str]] = field(default_factory=dict)
    """As in facts of pages."""

    @classmethod
    def begin(
        cls, methods: Sequence[Method], budgets: tuple[float, ...], evaluate: Evaluator, kept: Path | None = None
    ) -> Tally:
        """Nothing counted yet. `kept` is the file for what is kept of each page; None: a temporary one."""
        cells, pages = sum(len(m.budgets(budgets)) * m.trials for m in methods), len(evaluate.by_id)
        return cls(
            methods,
            budgets,
            evaluate,
            np.full((1 + cells, len(evaluate.judged.rows)), np.nan, np.float32),
            RankCounts.none(evaluate.judged, 1 + cells, TOP),
            KeptCounts(1 + cells, pages, kept),
            np.zeros(1 + cells, np.int64),
            np.zeros(cells, np.int64),
            np.zeros(len(methods)),
        )

    def add(self, facts: PageFacts) -> None:
        self.kept.put(facts.pages, facts.vectors)
        self.vectors += facts.vectors.sum(-1)
        self.bits += facts.bits
        self.seconds += facts.seconds
        self.prompt_vectors += facts.prompt_vectors
        self.failed = _earliest([self.failed, facts.failures])

    @property
    def _arrays(self) -> dict[str, np.ndarray]:
        counts = {name: getattr(self.counts, name) for name in ("higher", "before", "best", "heights")}
        return {"known": self.known, **counts, "vectors": self.vectors, "bits": self.bits, "seconds": self.seconds}

    def state(self, counted: np.ndarray) -> dict[str, np.ndarray]:
        """All that was counted, of the pages that are `True`; what was kept of them lies in its file."""
        others = {"prompt_vectors": np.array(self.prompt_vectors), "failed": np.array(json.dumps(self.failed))}
        return {**self._arrays, **others, "counted": np.packbits(counted)}

    def restore(self, state: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """Take up what `state` gave; the pages that were counted. None, and nothing changed, if that is not what lies
        in the file of what was kept.
        """
        counted = np.unpackbits(state["counted"], count=self.kept.pages).astype(bool)
        if not np.array_equal(self.kept.totals(counted), state["vectors"]):
            return None
        for name, array in self._arrays.items():
            array[...] = state[name]
        self.prompt_vectors = int(state["prompt_vectors"])
        self.failed = {text: (page, why) for text, (page, why) in json.loads(str(state["failed"])).items()}
        return counted

    @property
    def failures(self) -> dict[str, str]:
        """The methods that failed, in their order, and why."""
        return {method.text: self.failed[method.text][1] for method in self.methods if method.text in self.failed}

    @property
    def milliseconds(self) -> dict[str, float]:
        """Of pruning a page, all budgets of a trial, by method."""
        pages = self.kept.pages
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


@dataclass(frozen=True)
class Counting:
    """Of scores only counts and facts are kept: what a worker does with pages that it scored, and all it needs."""

    judged: JudgedPairs
    known: np.ndarray
    """As in a tally."""

    def __call__(self, lots: Lots) -> tuple[RankCounts, PageFacts]:
        counts, facts = RankCounts.none(self.judged, len(self.known), TOP), []
        for pages, scored in lots:
            counts.count(self.judged, self.known, np.stack([page.scores for page in scored]), np.array(pages))
            facts.append(PageFacts.of(pages, scored))
        return counts, PageFacts.together(facts)


def tally(
    job: Job,
    evaluate: Evaluator,
    workers: int,
    advance: Callable[[int], None],
    engine: WorkEngine = PROCESSES,
    saved: ScoringState | None = None,
) -> Tally:
    """Prune, score and count all pages of a store. Who was killed goes on where `saved` was written."""
    found = Tally.begin(job.methods, job.budgets, evaluate, saved.kept if saved else None)
    together, block = (AT_THE_END, AT_THE_END) if job.queries.on_gpu else (TOGETHER, BLOCK)  # what is sent is held
    state = saved.read() if saved else None
    counted = None if state is None else found.restore(state)
    if counted is not None:
        advance(int(counted.sum()))
    else:
        if saved:  # what it says is not of the pages that will now be noted
            saved.path.unlink(missing_ok=True)
        counted = _count_judged(job, found, workers, together, advance, engine)
    rest = np.flatnonzero(~counted).astype(np.int32)
    count = Counting(evaluate.judged, found.known)
    with spread_scores(job, portions(rest, together, block), workers, count, engine=engine, ordered=False) as parts:
        for counts, facts in parts:
            found.counts.add(counts)
            found.add(facts)
            counted[facts.pages] = True
            if saved and saved.due:
                saved.write(found.state(counted))
            advance(len(facts.pages))
    if saved and (saved.due or saved.path.is_file()):  # results are still to be written
        saved.write(found.state(counted))
    return found


def _count_judged(
    job: Job, found: Tally, workers: int, together: int, advance: Callable[[int], None], engine: WorkEngine
) -> np.ndarray:
    """Score the judged pages, and count them too if all their scores can be held until then; the pages counted."""
    judged, counted = found.evaluate.judged, np.zeros(len(job.store), bool)
    pages = np.unique(judged.pages[judged.pages >= 0])
    hold = len(pages) * len(found.known) * len(job.queries) * 4 <= HELD
    # one array, so that the system has its memory again afterwards
    held = np.empty((len(pages) if hold else 0, len(found.known), len(job.queries)), np.float32)
    with spread_scores(job, portions(pages.tolist(), together), workers, engine=engine) as results:
        for i, (page, scored) in enumerate(zip(pages.tolist(), itertools.chain.from_iterable(results), strict=True)):
            judged.scores(scored.scores, page, found.known)
            if hold:
                held[i] = scored.scores
                found.add(PageFacts.of([page], [scored]))
                advance(1)
    if hold:
        found.counts.count(judged, found.known, held, pages)
        counted[pages] = True
    return counted


def portions(pages: Any, together: int = TOGETHER, block: int = TOGETHER) -> list[Any]:
    """Slices of a sequence of pages: blocks of lots of so many together, smaller ones towards the end.

    A single page first: it is pruned in this process, which a method that ends its process should not take along.
    """
    found, at = [pages[:1]] if len(pages) else [], 1
    while (left := len(pages) - at) > 0:
        lots = min(block, left // 16) // together
        size = max(1, lots) * together if left > together else AT_THE_END
        found.append(pages[at : at + size])
        at += size
    return found
