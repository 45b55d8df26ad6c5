"""The rounds of Token Merging."""

from __future__ import annotations

import numba
import numpy as np

from .rows import first_highest, set_unit, unit_rows


@numba.njit(cache=True)
def merge_sequence(vectors: np.ndarray, rate: float) -> np.ndarray:
    """Merges `[N - 1, 2]` as `trees.cut` reads them: round after round, within a round the most similar pair first.

    In a round each even vector proposes to its most similar odd one. Groups stay where their odd member is, as sums:
    the size-weighted mean of a merge is then a plain addition, and has the same direction. Compiled, because a page
    takes dozens of rounds of a dozen small steps each.
    """
    n = len(vectors)
    sums, directions = vectors.copy(), unit_rows(vectors)
    merges, done, left, cluster = np.empty((n - 1, 2), np.int64), 0, np.arange(n), np.arange(n)
    while len(left) > 1:
        even, odd = left[0::2], left[1::2]
        similarity = np.dot(directions[even], directions[odd].T)
        best, partner = np.empty(len(even), np.float32), np.empty(len(even), np.int64)
        for i in range(len(even)):
            partner[i] = first_highest(similarity[i])
            best[i] = similarity[i, partner[i]]
        stays = np.ones(n, np.bool_)
        for _ in range(max(1, int(rate * len(left)))):
            pair = first_highest(best)
            best[pair] = -np.inf
            gone, into = even[pair], odd[partner[pair]]
            merges[done, 0], merges[done, 1] = cluster[gone], cluster[into]
            cluster[into] = n + done
            done += 1
            stays[gone] = False
            for d in range(vectors.shape[1]):
                sums[into, d] += sums[gone, d]
            set_unit(directions[into], sums[into])
        left = left[stays[left]]
    return merges
