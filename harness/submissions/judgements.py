"""Relevance in a data set, and figures computed again: NDCG from rankings, Score Retention from queries.

NDCG follows trec_eval: linear gain, discount 1 / log2(rank + 1), the ideal order of all judged pages below it. It is
written here a second time on purpose: it shares no code with what measured the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from harness.metrics.ranking import TOP
from harness.submissions.tables import PerQuery

DISCOUNTS = 1 / np.log2(np.arange(2, 102))
"""Of the first hundred ranks, as trec_eval has them."""
RANKED = (1, 5, 10)
"""Cutoffs that ten stored pages suffice for."""
DEEPER = (50, 100)
BEHIND = np.concatenate([[0], DISCOUNTS[TOP:].cumsum()])
"""What so many pages behind the stored ones add at most, for a grade of 1."""


@dataclass(frozen=True)
class LanguageQueries:
    """The queries of one language: where they are among all, and their order by name."""

    at: np.ndarray
    by_name: np.ndarray
    names: tuple[str, ...]
    """In that order."""


@dataclass(frozen=True)
class Judgements:
    """Relevance in one data set. Queries without a relevant page are left out, as they are when measuring."""

    page_ids: tuple[str, ...]
    qrels: Mapping[str, Mapping[str, int]]
    languages: Mapping[str, str]

    @cached_property
    def queries(self) -> dict[str, int]:
        judged = (query for query, pages in self.qrels.items() if any(grade > 0 for grade in pages.values()))
        return {query: i for i, query in enumerate(judged)}

    @cached_property
    def pages(self) -> dict[str, int]:
        return {page: i for i, page in enumerate(self.page_ids)}

    @cached_property
    def language_of(self) -> np.ndarray:
        return np.array([self.languages.get(query, "") for query in self.queries], dtype=object)

    @cached_property
    def asked(self) -> dict[str, LanguageQueries]:
        """By language."""
        names, found = np.array(list(self.queries), dtype=object), {}
        for language in dict.fromkeys(self.language_of):
            at = np.flatnonzero(self.language_of == language)
            order = np.argsort(names[at])
            found[language] = LanguageQueries(at, order, tuple(names[at][order]))
        return found

    @cached_property
    def language_code(self) -> np.ndarray:
        """The language of each query as its place in `asked`."""
        return np.array([list(self.asked).index(language) for language in self.language_of])

    @cached_property
    def _relevant_pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Query and page of every relevant pair as one number, ascending, and its grade: few of all pairs are."""
        found = [
            (i * len(self.page_ids) + self.pages[page], grade)
            for query, i in self.queries.items()
            for page, grade in self.qrels[query].items()
            if grade > 0
        ]
        pairs, grades = np.array(sorted(found), np.int64).reshape(-1, 2).T
        return pairs, grades

    def grades_of(self, query: np.ndarray, top: np.ndarray) -> np.ndarray:
        """Grades of the ranked pages `top [rows, ranks]` of each row's query; 0 for no page (-1)."""
        pairs, grades = self._relevant_pairs
        wanted = query[:, None].astype(np.int64) * len(self.page_ids) + top
        at = np.searchsorted(pairs, wanted).clip(max=len(pairs) - 1)
        return np.where((pairs[at] == wanted) & (top >= 0), grades[at], 0)

    @cached_property
    def highest(self) -> int:
        """Of all grades."""
        return int(self._relevant_pairs[1].max())

    @cached_property
    def relevant(self) -> np.ndarray:
        """Relevant pages of each query."""
        return np.array([sum(grade > 0 for grade in self.qrels[query].values()) for query in self.queries])

    def ideal(self, cutoff: int) -> np.ndarray:
        """The best possible DCG of each query."""
        if cutoff not in self._ideals:
            self._ideals[cutoff] = self._ideal(cutoff)
        return self._ideals[cutoff]

    @cached_property
    def _ideals(self) -> dict[int, np.ndarray]:
        return {}

    def _ideal(self, cutoff: int) -> np.ndarray:
        best = [
            sorted((g for g in self.qrels[query].values() if g > 0), reverse=True)[:cutoff] for query in self.queries
        ]
        return np.array([np.dot(grades, DISCOUNTS[: len(grades)]) for grades in best])


@dataclass(frozen=True)
class Rankings:
    """The rows of one data set, as indices into its pinned queries and pages; -1 for what is not known there."""

    rows: np.ndarray
    """Where in the table they are."""
    query: np.ndarray
    top: np.ndarray
    """`[rows, 10]`, -1 also where a ranking is shorter."""


def rankings(table: PerQuery, name: str, judged: Judgements) -> Rankings:
    code = table.data_set.names.index(name)
    rows = np.flatnonzero(table.data_set.codes == code)
    page_at = np.array([judged.pages.get(page, -1) for page in table.top.names] + [-1], np.int32)  # -1 reaches the last
    query_at = np.array([judged.queries.get(query, -1) for query in table.query.names])
    return Rankings(rows, query_at[table.query.codes[rows]], page_at[table.top.codes[rows]])


def gains(found: Rankings, judged: Judgements) -> np.ndarray:
    """Grades of the ranked pages `[rows, 10]`; 0 for pages that are not judged, or not known."""
    return judged.grades_of(found.query, found.top)


def ndcg(gained: np.ndarray, found: Rankings, judged: Judgements) -> dict[int, np.ndarray]:
    """NDCG at the cutoffs that stored rankings reach, one value a row."""
    reached = (gained * DISCOUNTS[:TOP]).cumsum(1)
    return {k: reached[:, k - 1] / judged.ideal(k)[found.query] for k in RANKED}


def deeper_bounds(gained: np.ndarray, found: Rankings, judged: Judgements) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """What NDCG at 50 and 100 can be, given the first ten pages: all else irrelevant, or all that is left follows."""
    reached = (gained * DISCOUNTS[:TOP]).sum(1)
    left = np.maximum(judged.relevant[found.query] - (gained > 0).sum(1), 0)
    bounds = {}
    for cutoff in DEEPER:
        ideal = judged.ideal(cutoff)[found.query]
        best = reached + judged.highest * BEHIND[np.minimum(left, cutoff - TOP)]
        bounds[cutoff] = reached / ideal, np.minimum(best / ideal, 1)
    return bounds


def pair_mean_bounds(per_query: np.ndarray, pairs: np.ndarray, left_out: int) -> tuple[float, float]:
    """The same where pairs were left out: the least and the most that it can be, whichever pairs they were.

    A query without a value has lost all of its pairs; of the others each has kept one at least.
    """
    known = ~np.isnan(per_query)
    values, weights = per_query[known], pairs[known].astype(float)
    spare = float(left_out - pairs[~known].sum())
    return _least_mean(values, weights, spare), -_least_mean(-values, weights, spare)


def _least_mean(values: np.ndarray, weights: np.ndarray, spare: float) -> float:
    """Of a weighted mean from which `spare` weight may be taken, but no value's last: the highest values lose first."""
    left = weights.copy()
    for i in np.argsort(-values):
        taken = min(left[i] - 1, spare)
        if spare <= 0 or values[i] * left.sum() <= np.dot(values, left):
            break
        left[i] -= taken
        spare -= taken
    return float(np.dot(values, left) / left.sum()) if len(values) else float("nan")


def pair_mean(per_query: np.ndarray, pairs: np.ndarray) -> float:
    """Score Retention over gold pairs from its means by query; exact where no pair was left out."""
    return float(np.dot(per_query, pairs) / pairs.sum())
