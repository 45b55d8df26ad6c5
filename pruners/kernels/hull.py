"""Picking vectors one after another, each farthest from the convex hull of those picked before."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True, fastmath={"reassoc", "contract"})  # a sum in any order, so that several numbers at a time
def _dot(a: np.ndarray, b: np.ndarray) -> float:
    found = a.dtype.type(0)
    for d in range(len(a)):
        found += a[d] * b[d]
    return found


@numba.njit(cache=True)
def hull_order(vectors: np.ndarray, start: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The first `count` of all vectors in that order, and how far each lay from the hull when it was picked.

    Each vector follows its nearest point of the hull by one step towards every vertex that is added (Gilbert 1966), so
    distances are never below the true ones. What lies within 1e-3 of the hull is on it. Ties, to five digits of the
    squares, go to the first: rounding must not choose.
    """
    n, dim = vectors.shape
    order, distances = np.empty(count, np.int64), np.empty(count, np.float32)
    order[0], distances[0] = start, np.inf
    gaps = np.empty((n, dim), np.float32)  # from its point of the hull to each vector
    squared = np.empty(n, np.float32)
    for j in range(n):
        for d in range(dim):
            gaps[j, d] = vectors[j, d] - vectors[start, d]
        squared[j] = _dot(gaps[j], gaps[j])
    squared[start] = -1  # picked
    step = np.empty(dim, np.float32)
    for place in range(1, count):
        top = np.float32(0)
        for j in range(n):
            if 0 <= squared[j] < np.float32(1e-6):
                squared[j] = 0
            top = max(top, squared[j])
        best = 0
        while squared[best] < top * np.float32(1 - 1e-5):
            best += 1
        order[place], distances[place] = best, np.sqrt(squared[best])
        squared[best] = -1
        for j in range(n):
            if squared[j] <= 0:
                continue
            for d in range(dim):  # from its point of the hull to the new vertex
                step[d] = vectors[best, d] - vectors[j, d] + gaps[j, d]
            gain = _dot(gaps[j], step)
            if gain > 0:
                part = min(np.float32(1), gain / _dot(step, step))
                for d in range(dim):
                    gaps[j, d] -= part * step[d]
                squared[j] = _dot(gaps[j], gaps[j])
    return order, distances
