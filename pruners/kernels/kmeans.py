"""K-Means on a page by scikit-learn's rules: greedy k-means++, Lloyd's iterations, its way with empty clusters."""

from __future__ import annotations

import numba
import numpy as np

from .groups import sizes
from .rows import add_rows, squares


@numba.njit(cache=True)
def squared_distances(vectors: np.ndarray) -> np.ndarray:
    own, squared = squares(vectors), np.dot(vectors, vectors.T)
    for i in range(len(vectors)):
        for j in range(len(vectors)):
            squared[i, j] = max(own[i] + own[j] - 2 * squared[i, j], np.float32(0))
    return squared


@numba.njit(cache=True)
def seed_centres(squared: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Greedy k-means++: of a few candidates drawn in proportion to squared distance, the one that lowers the sum most.

    `draws [k, candidates]` are uniform numbers in [0, 1); the first centre is uniform.
    """
    k, candidates = draws.shape
    n = len(squared)
    chosen, cumulative = np.empty(k, np.int64), np.empty(n)
    chosen[0] = int(draws[0, 0] * n)
    nearest = squared[chosen[0]].copy()
    for i in range(1, k):
        total = 0.0
        for j in range(n):
            total += nearest[j]
            cumulative[j] = total
        best, best_sum = -1, np.inf
        for c in range(candidates):
            candidate = 0
            while candidate < n - 1 and cumulative[candidate] <= draws[i, c] * total:
                candidate += 1
            after = 0.0
            for j in range(n):
                after += min(nearest[j], squared[candidate, j])
            if after < best_sum:
                best, best_sum = candidate, after
        chosen[i] = best
        for j in range(n):
            nearest[j] = min(nearest[j], squared[best, j])
    return chosen


@numba.njit(cache=True)
def lloyd(vectors: np.ndarray, centres: np.ndarray, max_iter: int, tolerance: float) -> np.ndarray:
    """The cluster of each vector, none of them empty; their means are the final centroids."""
    own = squares(vectors)
    labels, gaps = np.full(len(vectors), -1), np.empty(len(vectors), np.float32)
    for _ in range(max_iter):
        if not _assign(vectors, own, centres, labels, gaps):
            break
        last = centres
        centres = _centroids(vectors, labels, gaps, len(last))
        if _moved(last, centres) <= tolerance:
            break
    return labels


@numba.njit(cache=True)
def _assign(vectors: np.ndarray, own: np.ndarray, centres: np.ndarray, labels: np.ndarray, gaps: np.ndarray) -> bool:
    """The nearest centre of each vector, and the squared distance to it; whether any vector has a new one."""
    lengths, changed = squares(centres), False
    products = np.dot(vectors, centres.T)
    for i in range(len(vectors)):
        nearest, least = 0, lengths[0] - 2 * products[i, 0]
        for j in range(1, len(centres)):
            gap = lengths[j] - 2 * products[i, j]
            if gap < least:
                nearest, least = j, gap
        changed |= labels[i] != nearest
        labels[i], gaps[i] = nearest, own[i] + least
    return changed


@numba.njit(cache=True)
def _centroids(vectors: np.ndarray, labels: np.ndarray, gaps: np.ndarray, k: int) -> np.ndarray:
    """The mean of each cluster. An empty one first takes the vector farthest from its centre, out of a larger one."""
    members, centres = sizes(labels, k), np.zeros((k, vectors.shape[1]), np.float32)
    for empty in range(k):
        if members[empty] > 0:
            continue
        farthest = -1
        for i in range(len(labels)):
            if members[labels[i]] > 1 and (farthest < 0 or gaps[i] > gaps[farthest]):
                farthest = i
        members[labels[farthest]] -= 1
        labels[farthest], members[empty], gaps[farthest] = empty, 1, -np.inf
    add_rows(centres, labels, vectors)
    for j in range(k):
        for d in range(centres.shape[1]):
            centres[j, d] /= members[j]
    return centres


@numba.njit(cache=True)
def _moved(before: np.ndarray, after: np.ndarray) -> float:
    """The sum of the centroids' squared moves."""
    total = 0.0
    for j in range(len(before)):
        for d in range(before.shape[1]):
            total += (after[j, d] - before[j, d]) ** 2
    return total
