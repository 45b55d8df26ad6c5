"""The compiled loops of `ranking.py`: where judged pages rank, and which pages rank first, without sorting all of them.

`matrices [n, queries, pages]` are scores in float32. Pages go by score, and equal ones by descending id: `by_id` are
all pages in that order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np


def by_descending_id(page_ids: Sequence[str]) -> np.ndarray:
    return np.argsort(np.array(page_ids, dtype=object))[::-1].copy()


def judged_ranks(
    matrices: np.ndarray, rows: np.ndarray, pages: np.ndarray, by_id: np.ndarray, depth: int
) -> np.ndarray:
    """The rank `[n, pairs]` of page `pages[i]` in row `rows[i]`, 1 the best; 0 where `depth` pages have a higher
    score, and for page -1, which is not in the corpus.
    """
    place = np.empty(len(by_id), np.int32)
    place[by_id] = np.arange(len(by_id))
    return _judged_ranks(matrices, rows, pages, place, depth)


@numba.njit(cache=True)
def _judged_ranks(
    matrices: np.ndarray, rows: np.ndarray, pages: np.ndarray, place: np.ndarray, depth: int
) -> np.ndarray:
    ranks = np.zeros((len(matrices), len(rows)), np.int32)
    for m in range(len(matrices)):
        for i in range(len(rows)):
            if pages[i] < 0:
                continue
            scores = matrices[m, rows[i]]
            own, at = scores[pages[i]], place[pages[i]]
            above, equal = np.int32(0), np.int32(0)
            for p in range(len(scores)):
                above += np.int32(scores[p] > own)
                equal += np.int32((scores[p] == own) & (place[p] < at))
            if above < depth:
                ranks[m, i] = above + equal + 1
    return ranks


@numba.njit(cache=True)
def best_pages(matrices: np.ndarray, rows: np.ndarray, by_id: np.ndarray, depth: int) -> np.ndarray:
    """The first `depth` pages `[n, rows, depth]` of these rows: each page is put where it belongs among those found."""
    best = np.empty((len(matrices), len(rows), depth), np.int64)
    heights = np.empty(depth, np.float32)
    for m in range(len(matrices)):
        for r in range(len(rows)):
            scores, found = matrices[m, rows[r]], best[m, r]
            for n in range(len(by_id)):
                page = by_id[n]
                score = scores[page]
                if n >= depth and not score > heights[depth - 1]:
                    continue
                at = min(n, depth - 1)
                while at > 0 and score > heights[at - 1]:
                    heights[at], found[at] = heights[at - 1], found[at - 1]
                    at -= 1
                heights[at], found[at] = score, page
    return best
