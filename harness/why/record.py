"""A run opened to look into it: its pages, its methods as they were measured, and the proof that they are those.

What a method keeps is worked out again, from what the run recorded of it, and compared with the run: the number of
vectors of every page that is shown, the order of the pages that were found, and Score Retention. A difference is an
error: a picture of something that was not measured would be worse than none.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.evaluation.methods import FULL
from harness.evaluation.pruned_pages import NATIVE
from harness.evaluation.results import Result
from harness.metrics.ranking import TOP
from harness.store.reader import find_store
from harness.why.kept_vectors import SUBSET, KeptVectors, kept_at
from harness.why.page_view import DrawnQuery
from harness.why.pages import Pages
from pruners.core.errors import PruneBoardError

if TYPE_CHECKING:
    from harness.benchmarks.data_set import DataSet
    from harness.runs.results import Results
    from harness.submissions.run_facts import FinishedRun
    from pruners import Pruner

TOLERANCE = 1e-4
"""Of a score: a GPU adds in another order than a CPU."""


class NotWhatWasMeasured(PruneBoardError):  # noqa: N818 (it says what is wrong)
    """What comes out now is not what the run recorded."""


@dataclass(frozen=True)
class Record:
    """`pages` are the data sets whose pages can be drawn; `missing` says what of the others is gone."""

    results: Results
    run: FinishedRun
    pages: Mapping[str, Pages]
    missing: Sequence[str]
    _kept: dict[tuple[str, str, int], list[KeptVectors]] = field(default_factory=dict)
    _pruners: dict[str, Pruner] = field(default_factory=dict)
    _results: dict[tuple[str, str], Result] = field(default_factory=dict)
    _rows: dict[tuple[str, str, float], Any] = field(default_factory=dict)

    @property
    def budgets(self) -> tuple[float, ...]:
        return self.run.config.budgets

    def kept(self, data_set: str, method: str, page: int, budget: float) -> KeptVectors:
        """What a method kept of a page, if it is as many vectors as the run recorded."""
        pages = self.pages[data_set]
        if method == FULL:
            whole = pages.page(page)
            return KeptVectors(whole.vectors, np.arange(len(whole)), SUBSET)
        known = data_set, method, page
        if known not in self._kept:
            self._kept[known] = self._prune(data_set, method, page)
        return self._kept[known][self.budgets.index(budget)]

    def score(self, data_set: str, method: str, page: int, budget: float, query: DrawnQuery) -> float:
        """MaxSim of a query and what a method kept of a page."""
        import torch

        vectors = self.kept(data_set, method, page, budget).vectors
        prompt = self.pages[data_set].prompt(page)
        indexed = vectors if prompt is None else torch.cat([vectors, prompt])
        return float((query.vectors @ indexed.T).max(dim=1).values.sum())

    def check_query(self, data_set: str, method: str, budget: float, query: DrawnQuery, gold: Sequence[str]) -> None:
        """Compare a query's ranking and Score Retention under a method with what the run recorded."""
        found = self.ranked(data_set, method, budget, query.id)
        pages = self.pages[data_set]
        names = list(dict.fromkeys([*found, *gold]))
        scores = {name: self.score(data_set, method, pages.index(name), budget, query) for name in names}
        where = f"{self.run.files.folder}, {data_set}, query {query.id!r}, {method} at {budget:g}"
        slack = TOLERANCE * max(1.0, *map(abs, scores.values()))
        for better, worse in itertools.pairwise(found):
            if scores[better] < scores[worse] - slack:
                raise _differs(where, f"page {better!r} was ranked above {worse!r}, and now scores less")
        if beyond := [name for name in gold if name not in found and scores[name] > scores[found[-1]] + slack]:
            raise _differs(where, f"page {beyond[0]!r} was not among the best {len(found)}, and now would be")
        recorded = self._row(data_set, method, budget, query.id)["score_retention"]
        full = {name: self.score(data_set, FULL, pages.index(name), 1.0, query) for name in gold}
        ratios = [scores[name] / full[name] for name in gold if full[name] > 0]
        if ratios and recorded == recorded and abs(np.mean(ratios) - recorded) > 10 * TOLERANCE:
            raise _differs(where, f"Score Retention was {recorded:.4f} and is {np.mean(ratios):.4f}")

    def ranked(self, data_set: str, method: str, budget: float, query: str) -> list[str]:
        """The best pages that a query found, of the first trial."""
        return list(self._row(data_set, method, budget, query)[f"top_{TOP}"])

    def slug(self, method: str) -> str:
        return FULL if method == FULL else self.run.methods[method]["slug"]

    def _row(self, data_set: str, method: str, budget: float, query: str) -> Any:
        at = 1.0 if method == FULL else budget
        if (data_set, method, at) not in self._rows:
            rows = self._result(data_set, method).per_query
            self._rows[data_set, method, at] = rows[(rows["budget"] == at) & (rows["trial"] == 0)].set_index("query")
        return self._rows[data_set, method, at].loc[query]

    def _prune(self, data_set: str, method: str, index: int) -> list[KeptVectors]:
        pages = self.pages[data_set]
        page = pages.page(index)
        gold = [pages.query_vectors(query) for query in pages.gold_queries(page.id)]
        found = kept_at(self._pruner(method), page, self.budgets, seed=self.run.config.seed, gold=gold)
        recorded = self._result(data_set, method).kept
        for b, (budget, kept) in enumerate(zip(self.budgets, found, strict=True)):
            if len(kept) != (count := recorded[0, b][index]):
                where = f"{self.run.files.folder}, {data_set}, page {page.id!r}, {method} at {budget:g}"
                raise _differs(where, f"the run kept {count} vectors, and now it keeps {len(kept)}")
        return found

    def _pruner(self, method: str) -> Pruner:
        if method not in self._pruners:
            self._pruners[method] = self.results.method(method)
        return self._pruners[method]

    def _result(self, data_set: str, method: str) -> Result:
        if (data_set, method) not in self._results:
            self._results[data_set, method] = self.run.files.read_result(data_set, self.slug(method))
        return self._results[data_set, method]


def open_record(results: Results, stores: Path, figures_only: bool = False) -> Record:
    """The run's record with what is still there of its pages and stores."""
    from harness.benchmarks.benchmark import load_benchmark

    run = results._run
    if figures_only:
        return Record(results, run, {}, ["pages and queries, which were not asked for"])
    try:
        data_sets = {each.name: each for each in load_benchmark(run.config.benchmark).data_sets}
    except (PruneBoardError, OSError) as error:
        return Record(results, run, {}, [f"the benchmark {run.config.benchmark}: {error}"])
    pages, missing = {}, []
    load = _once(run)
    for name, facts in run.stores.items():
        try:
            pages[name] = _pages(run, name, facts, data_sets, stores, load)
        except PruneBoardError as error:
            missing.append(f"{name}: {error}")
    return Record(results, run, pages, missing)


def _pages(
    run: FinishedRun,
    name: str,
    facts: Mapping[str, Any],
    data_sets: Mapping[str, DataSet],
    stores: Path,
    load: Any,
) -> Pages:
    data_set = data_sets.get(name)
    if data_set is None:
        raise PruneBoardError(f"the benchmark {run.config.benchmark} no longer has this data set")
    if changed := [part for part, found in data_set.content.items() if facts["content"].get(part, found) != found]:
        raise PruneBoardError(f"its {', '.join(changed)} changed since it was measured")
    return Pages(data_set, find_store(stores, facts["store"]), load, run.config.profile == NATIVE)


def _once(run: FinishedRun) -> Any:
    """Loads the run's backbone, for the words of queries and the tiles of pages, when it is first asked for."""

    @cache
    def load() -> Any:
        from harness.backbones import registry
        from harness.backbones.contract import Options

        config = run.config
        options = Options(device=config.device, dtype=config.dtype, max_visual_tokens=config.max_visual_tokens)
        return registry.load(config.backbone, options)

    return load


def _differs(where: str, what: str) -> NotWhatWasMeasured:
    return NotWhatWasMeasured(
        f"{where}: {what}. This is not what was measured, so nothing is drawn. Evaluate the run again, or look at its "
        "figures alone with --figures-only"
    )


def gold_pages(data_set: DataSet, query: str) -> list[str]:
    return [page for page, grade in data_set.qrels.get(query, {}).items() if grade > 0]
