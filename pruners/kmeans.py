"""K-Means on a page's projected vectors, centroids in their place ("Semantic Clustering").

Reference: Ma et al. 2025 (arXiv 2506.04997), as the SAP paper's App. "Baseline Implementation Details" defines it.
The rules are scikit-learn's: greedy k-means++ (Arthur & Vassilvitskii 2007), Lloyd's iterations, its tolerance, its
way with empty clusters. Compiled here because its seeding and its calls cost several times the arithmetic on a page;
the seeding works on a distance matrix that all budgets share.
"""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np

from pruners import Page, reducer
from pruners.core.rows import add_rows, squares

TOLERANCE = 1e-4
"""Iterations end when the centroids' squared moves sum to less than this part of the mean variance of a dimension."""


@reducer("kmeans", paper="Ma et al. 2025, arXiv 2506.04997 (Semantic Clustering)", trials=1)
def kmeans(
    page: Page, rng: np.random.Generator, renormalize: bool = True, max_iter: int = 100
) -> Callable[[int], np.ndarray]:
    """K-Means centroids, renormalised; renormalize=false is the paper's variant.

    Its start is drawn anew for each trial; one trial by default, for its cost.
    """
    vectors = page.vectors.numpy()
    squared = _squared_distances(vectors)
    tolerance = TOLERANCE * float(squared.mean()) / 2 / vectors.shape[1]  # pairs lie twice the variance apart
    seed = int(rng.integers(2**31))

    def at(k: int) -> np.ndarray:
        # its own generator for each k: what one budget draws must not depend on the others asked for
        draws = np.random.default_rng([seed, k]).random((k, 2 + int(np.log(k))))
        return lloyd(vectors, vectors[seed_centres(squared, draws)], max_iter, tolerance)

    return at


@numba.njit(cache=True)
def _squared_distances(vectors: np.ndarray) -> np.ndarray:
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
    chosen = np.empty(k, np.int64)
    chosen[0] = int(draws[0, 0] * n)
    nearest = squared[chosen[0]].copy()
    for i in range(1, k):
        cumulative = np.cumsum(nearest.astype(np.float64))
        best, best_sum = -1, np.inf
        for c in range(candidates):
            candidate = min(n - 1, np.searchsorted(cumulative, draws[i, c] * cumulative[-1], side="right"))
            total = 0.0
            for j in range(n):
                total += min(nearest[j], squared[candidate, j])
            if total < best_sum:
                best, best_sum = candidate, total
        chosen[i] = best
        nearest = np.minimum(nearest, squared[best])
    return chosen


@numba.njit(cache=True)
def lloyd(vectors: np.ndarray, centres: np.ndarray, max_iter: int, tolerance: float) -> np.ndarray:
    """The cluster of each vector, none of them empty; their means are the final centroids."""
    n, k, own = len(vectors), len(centres), squares(vectors)
    labels, before, gaps = np.full(n, -1), np.empty(n, np.int64), np.empty(n, np.float32)
    for _ in range(max_iter):
        before[:] = labels
        _assign(vectors, own, centres, labels, gaps)
        if (labels == before).all():
            break
        last = centres
        centres = _centroids(vectors, labels, gaps, k)
        if squares(centres - last).sum() <= tolerance:
            break
    return labels


@numba.njit(cache=True)
def _assign(vectors: np.ndarray, own: np.ndarray, centres: np.ndarray, labels: np.ndarray, gaps: np.ndarray) -> None:
    """The nearest centre of each vector, and the squared distance to it."""
    lengths = squares(centres)
    products = np.dot(vectors, centres.T)
    for i in range(len(vectors)):
        nearest, least = 0, lengths[0] - 2 * products[i, 0]
        for j in range(1, len(centres)):
            gap = lengths[j] - 2 * products[i, j]
            if gap < least:
                nearest, least = j, gap
        labels[i], gaps[i] = nearest, own[i] + least


@numba.njit(cache=True)
def _centroids(vectors: np.ndarray, labels: np.ndarray, gaps: np.ndarray, k: int) -> np.ndarray:
    """The mean of each cluster. An empty one first takes the vector farthest from its centre, out of a larger one."""
    sizes = np.bincount(labels, minlength=k)
    for empty in np.flatnonzero(sizes == 0):
        farthest = -1
        for i in range(len(labels)):
            if sizes[labels[i]] > 1 and (farthest < 0 or gaps[i] > gaps[farthest]):
                farthest = i
        sizes[labels[farthest]] -= 1
        labels[farthest], sizes[empty], gaps[farthest] = empty, 1, -np.inf
    centres = np.zeros((k, vectors.shape[1]), np.float32)
    add_rows(centres, labels, vectors)
    return centres / sizes.astype(np.float32).reshape(-1, 1)
