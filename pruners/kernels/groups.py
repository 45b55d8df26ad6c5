"""Sums and means over groups of patches. Compiled, because every result of a merging method passes through these."""

from __future__ import annotations

import numba
import numpy as np

from .rows import add_rows, square


@numba.njit(cache=True)
def faults(labels: np.ndarray, k: int) -> tuple[int, int]:
    """The first patch whose label is neither -1 nor a group's, and the first group without a patch; -1: none."""
    for i in range(len(labels)):
        if labels[i] < -1 or labels[i] >= k:
            return i, -1
    counts = sizes(labels, k)
    for j in range(k):
        if counts[j] == 0:
            return -1, j
    return -1, -1


@numba.njit(cache=True)
def sizes(labels: np.ndarray, k: int) -> np.ndarray:
    """How many patches each group has."""
    counts = np.zeros(k, np.float32)
    for label in labels:
        if label >= 0:
            counts[label] += 1
    return counts


@numba.njit(cache=True)
def scales(vectors: np.ndarray, labels: np.ndarray, k: int, renormalize: bool) -> np.ndarray:
    """What each group's sum is multiplied by: 1 / size, or 1 / its length."""
    found = sizes(labels, k)
    if renormalize:
        sums = np.zeros((k, vectors.shape[1]), np.float32)
        add_rows(sums, labels, vectors)
        for j in range(k):  # a sum of zero has no direction and stays zero; the check on unit norm then names it
            found[j] = max(np.sqrt(square(sums[j])), np.float32(1e-12))
    for j in range(k):
        found[j] = 1 / found[j]
    return found


@numba.njit(cache=True)
def merged(vectors: np.ndarray, labels: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Each group's sum times its scale."""
    found = np.zeros((len(scale), vectors.shape[1]), np.float32)
    add_rows(found, labels, vectors)
    for j in range(len(scale)):
        for d in range(vectors.shape[1]):
            found[j, d] *= scale[j]
    return found
