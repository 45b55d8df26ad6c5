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

    Formula:
        min Σ_{j} ‖e_{j} − c_{a(j)}‖^{2} over k centroids
        v_{c} = c / ‖c‖
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
    labels, gaps = np.empty(len(vectors), np.int64), np.empty(len(vectors), np.float32)
    for i in range(len(labels)):
        labels[i] = -1
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
    sizes, centres = np.zeros(k, np.float32), np.zeros((k, vectors.shape[1]), np.float32)
    for label in labels:
        sizes[label] += 1
    for empty in range(k):
        if sizes[empty] > 0:
            continue
        farthest = -1
        for i in range(len(labels)):
            if sizes[labels[i]] > 1 and (farthest < 0 or gaps[i] > gaps[farthest]):
                farthest = i
        sizes[labels[farthest]] -= 1
        labels[farthest], sizes[empty], gaps[farthest] = empty, 1, -np.inf
    add_rows(centres, labels, vectors)
    for j in range(k):
        for d in range(centres.shape[1]):
            centres[j, d] /= sizes[j]
    return centres


@numba.njit(cache=True)
def _moved(before: np.ndarray, after: np.ndarray) -> float:
    """The sum of the centroids' squared moves."""
    total = 0.0
    for j in range(len(before)):
        for d in range(before.shape[1]):
            total += (after[j, d] - before[j, d]) ** 2
    return total
