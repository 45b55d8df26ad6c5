"""Ranks counted, not sorted: how many pages stand above each judged page, and the best pages of each query.

Pages go by score in float32, equal ones by descending id. Counts of some pages and of others add up exactly, in any
order, so that nothing need be kept of a page once it is counted, and any number of processes may count.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

NOWHERE = np.iinfo(np.int32).max
"""The place of no page: behind every other."""


def by_descending_id(page_ids: Sequence[str]) -> np.ndarray:
    """All pages in the order of their places: place 0 has the highest id."""
    if all(one < other for one, other in itertools.pairwise(page_ids)):  # a million ids need not be held to be sorted
        return np.arange(len(page_ids), dtype=np.int32)[::-1].copy()
    return np.argsort(np.array(page_ids, dtype=object))[::-1].copy()


@dataclass(frozen=True)
class JudgedPairs:
    """What is counted against: the judged (query, page) pairs of a data set."""

    rows: np.ndarray
    """The query of each pair, as its row in a table of scores."""
    pages: np.ndarray
    """The page of each pair; -1 where it is not in the corpus."""
    queries: np.ndarray
    """Rows of the queries whose best pages are kept."""
    place: np.ndarray
    """Of each page among all of them, by descending id."""

    def scores(self, column: np.ndarray, page: int, known: np.ndarray) -> None:
        """Note a judged page's scores `[cells, queries]` in `known [cells, pairs]`."""
        here = self.pages == page
        known[:, here] = column[:, self.rows[here]]


@dataclass(frozen=True)
class RankCounts:
    """Counts over some pages, of `cells` score tables at once."""

    higher: np.ndarray
    """Pages with a higher score than that of the judged page, `[cells, pairs]`."""
    before: np.ndarray
    """Pages with an equal score and a higher id, `[cells, pairs]`."""
    best: np.ndarray
    """Places of the best pages of each query, `[cells, queries, depth]`."""
    heights: np.ndarray
    """Their scores."""

    @classmethod
    def none(cls, judged: JudgedPairs, cells: int, depth: int) -> RankCounts:
        """Of no page yet."""
        pairs, best = (cells, len(judged.rows)), (cells, len(judged.queries), min(depth, len(judged.place)))
        counts = np.zeros(pairs, np.int32), np.zeros(pairs, np.int32)
        return cls(*counts, np.full(best, NOWHERE, np.int32), np.full(best, -np.inf, np.float32))

    def count(self, judged: JudgedPairs, known: np.ndarray, columns: np.ndarray, pages: np.ndarray) -> None:
        """Count `pages`, whose scores are `columns [pages, cells, queries]`; `known` are those of the judged pages."""
        places = judged.place[pages]
        own = np.where(judged.pages < 0, NOWHERE, judged.place[judged.pages]).astype(np.int32)
        _count(columns, places, judged.rows, known, own, self.higher, self.before)
        _keep_best(columns, places, judged.queries, self.best, self.heights)

    def add(self, other: RankCounts) -> None:
        """Add what was counted of other pages."""
        np.add(self.higher, other.higher, out=self.higher)
        np.add(self.before, other.before, out=self.before)
        _merge_best(self.best, self.heights, other.best, other.heights)

    def ranks(self, judged: JudgedPairs, depth: int, cells: Any = ...) -> np.ndarray:
        """The rank `[*cells, pairs]` of each judged page, 1 the best.

        0 where `depth` pages have a higher score, and for a page that is not in the corpus.
        """
        higher, before = self.higher[cells], self.before[cells]
        return np.where((higher < depth) & (judged.pages >= 0), higher + before + 1, 0)


@numba.njit(cache=True)
def _count(
    columns: np.ndarray,
    places: np.ndarray,
    rows: np.ndarray,
    known: np.ndarray,
    own: np.ndarray,
    higher: np.ndarray,
    before: np.ndarray,
) -> None:
    for n in range(columns.shape[0]):
        for c in range(columns.shape[1]):
            for i in range(len(rows)):
                score = columns[n, c, rows[i]]
                higher[c, i] += np.int32((score > known[c, i]) & (places[n] != own[i]))  # never above itself
                before[c, i] += np.int32((score == known[c, i]) & (places[n] < own[i]))


@numba.njit(cache=True)
def _keep_best(
    columns: np.ndarray, places: np.ndarray, queries: np.ndarray, best: np.ndarray, heights: np.ndarray
) -> None:
    for n in range(columns.shape[0]):
        for c in range(columns.shape[1]):
            for q in range(len(queries)):
                _insert(best[c, q], heights[c, q], places[n], columns[n, c, queries[q]])


@numba.njit(cache=True)
def _merge_best(best: np.ndarray, heights: np.ndarray, others: np.ndarray, their_heights: np.ndarray) -> None:
    for c in range(best.shape[0]):
        for q in range(best.shape[1]):
            for i in range(best.shape[2]):
                if others[c, q, i] != NOWHERE:
                    _insert(best[c, q], heights[c, q], others[c, q, i], their_heights[c, q, i])


@numba.njit(cache=True)
def _insert(best: np.ndarray, heights: np.ndarray, place: int, score: float) -> None:
    """Put a page where it belongs among the best; the last of them falls out."""
    at = len(best)
    while at > 0 and (score > heights[at - 1] or (score == heights[at - 1] and place < best[at - 1])):
        at -= 1
    if at == len(best):
        return
    for i in range(len(best) - 1, at, -1):
        best[i], heights[i] = best[i - 1], heights[i - 1]
    best[at], heights[at] = place, score
