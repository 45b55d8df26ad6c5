"""Greedy coverage: distances between patches, and the order in which they are picked."""

from __future__ import annotations

import numba
import numpy as np

from .rows import first_highest, unit_rows


@numba.njit(cache=True)
def cosine_distances(vectors: np.ndarray) -> np.ndarray:
    """1 - cos between all patches. Rounding noise is cut off, so that duplicates are at 0 exactly."""
    x = unit_rows(vectors)
    cosines = np.dot(x, x.T)
    distances = np.empty_like(cosines)
    for i in range(len(x)):
        for j in range(len(x)):
            gap = np.float32(1) - cosines[i, j]
            distances[i, j] = gap if gap >= np.float32(1e-6) else np.float32(0)
    return distances


@numba.njit(cache=True)
def greedy_order(distance: np.ndarray, factor: np.ndarray, bonus: np.ndarray, start: int) -> np.ndarray:
    """All patches in greedy order of bonus + factor · (distance to the nearest picked one); ties by patch index."""
    n = len(factor)
    order = np.empty(n, np.int64)
    order[0] = start
    nearest, value = distance[start].copy(), np.empty(n, np.float32)
    left = bonus.copy()  # minus infinity where a patch is picked
    for step in range(1, n):
        picked = order[step - 1]
        left[picked] = -np.inf
        for j in range(n):
            nearest[j] = min(nearest[j], distance[picked, j])
            value[j] = left[j] + factor[j] * nearest[j]
        order[step] = first_highest(value)
    return order
