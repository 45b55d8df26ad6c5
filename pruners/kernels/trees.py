"""Hierarchical clustering of a page's vectors: a tree that scipy grows once and that is cut at every budget.

Distances come from one matrix product: with scipy's own loop over pairs, a page of 1,024 vectors takes up to twice as
long. Growing the tree is left to scipy: loops of our own saved a fifth there, and at most 1.3 ms a tree below that.
"""

from __future__ import annotations

import numba
import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform


def ward(vectors: np.ndarray) -> np.ndarray:
    """Merges by Ward's rule over Euclidean distances, `[N - 1, 2]`, nearest first: see `cut`."""
    x = vectors.astype(np.float64)
    return ward_of_products(x @ x.T)


def ward_of_products(products: np.ndarray) -> np.ndarray:
    """Merges by Ward's rule, of points whose inner products are given."""
    return _grown(euclidean(products), "ward")


def ward_cosine(vectors: np.ndarray) -> np.ndarray:
    """Merges by Ward's rule over 1 - cos, as if that were a Euclidean distance."""
    return _grown(_cosine(vectors), "ward")


def average_cosine(vectors: np.ndarray) -> np.ndarray:
    """Merges by average linkage over 1 - cos."""
    return _grown(_cosine(vectors), "average")


def average_cosine_heights(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same merges, and the mean distance at which each happens; it never falls."""
    tree = _linkage(_cosine(vectors), "average")
    return tree[:, :2].astype(np.int64), tree[:, 2]


def _cosine(vectors: np.ndarray) -> np.ndarray:
    """1 - cos of all pairs, one row's after another's."""
    x = vectors.astype(np.float64)
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    return np.maximum(1 - squareform(x @ x.T, checks=False), 0)


def _grown(distances: np.ndarray, rule: str) -> np.ndarray:
    return _linkage(distances, rule)[:, :2].astype(np.int64)


def _linkage(distances: np.ndarray, rule: str) -> np.ndarray:
    return linkage(distances, rule) if len(distances) else np.empty((0, 4))  # a single point has no merges


@numba.njit(cache=True)
def cut(merges: np.ndarray, k: int) -> np.ndarray:
    """Labels 0..k-1 after all but the last k - 1 merges; clusters are numbered by their first patch.

    Merge i makes cluster N + i out of two earlier ones, as scipy numbers them; the first N are the patches.
    """
    n = len(merges) + 1
    top = np.arange(2 * n - 1)  # the cluster that each one ends up in
    for i in range(n - k - 1, -1, -1):
        top[merges[i, 0]] = top[merges[i, 1]] = top[n + i]
    number, labels, used = np.full(2 * n - 1, -1), np.empty(n, np.int64), 0
    for i in range(n):
        if number[top[i]] < 0:
            number[top[i]] = used
            used += 1
        labels[i] = number[top[i]]
    return labels


@numba.njit(cache=True)
def euclidean(products: np.ndarray) -> np.ndarray:
    """Distances of all pairs, one row's after another's, of points whose inner products are given."""
    n, at = len(products), 0
    own = np.diag(products).copy()
    nothing = 1e-12 * own.max()  # rounding of equal vectors would otherwise order their merges
    distances = np.empty(n * (n - 1) // 2)
    for i in range(n):
        for j in range(i + 1, n):
            gap = own[i] + own[j] - 2 * products[i, j]
            distances[at] = np.sqrt(gap) if gap >= nothing else 0.0
            at += 1
    return distances
