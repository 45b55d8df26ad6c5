"""Hierarchical clustering of a page's vectors, as a sequence of merges that is made once and cut short at every budget.

The nearest-neighbour chain (Müllner 2011, arXiv 1109.2378) with the updates of Lance and Williams, as scipy has it.
Compiled here because methods grow several small trees a page, and what scipy does around its loop costs more than the
loop; distances come from one matrix product instead of a loop over pairs.
"""

from __future__ import annotations

import numba
import numpy as np

from .rows import unit_rows

WARD, AVERAGE = 0, 1


@numba.njit(cache=True)
def ward(vectors: np.ndarray) -> np.ndarray:
    """Merges by Ward's rule over Euclidean distances."""
    x = vectors.astype(np.float64)
    return ward_of_products(np.dot(x, x.T))


@numba.njit(cache=True)
def ward_of_products(products: np.ndarray) -> np.ndarray:
    """Merges by Ward's rule, of points whose inner products are given."""
    squares = np.diag(products).copy()
    nothing = 1e-12 * squares.max()  # rounding of equal vectors would otherwise order their merges
    squared = np.empty_like(products)
    for i in range(len(products)):
        for j in range(len(products)):
            gap = squares[i] + squares[j] - 2 * products[i, j]
            squared[i, j] = gap if gap >= nothing else 0
    return merge_sequence(squared, WARD)


@numba.njit(cache=True)
def average_cosine(vectors: np.ndarray) -> np.ndarray:
    """Merges by average linkage over 1 - cos."""
    x = unit_rows(vectors.astype(np.float64))
    return merge_sequence(np.maximum(1 - np.dot(x, x.T), 0), AVERAGE)


@numba.njit(cache=True)
def cut(merges: np.ndarray, k: int) -> np.ndarray:
    """Labels 0..k-1 after all but the last k - 1 merges; clusters are numbered by their first patch."""
    n = len(merges) + 1
    place = np.arange(n)
    for i in range(n - k - 1, -1, -1):  # from the last: what went into a place goes where that one went
        place[merges[i, 0]] = place[merges[i, 1]]
    number, labels, used = np.full(n, -1), np.empty(n, np.int64), 0
    for i in range(n):
        if number[place[i]] < 0:
            number[place[i]] = used
            used += 1
        labels[i] = number[place[i]]
    return labels


@numba.njit(cache=True)
def merge_sequence(distances: np.ndarray, rule: int) -> np.ndarray:
    """Which cluster goes into which, `[N - 1, 2]`, nearest first. `distances` (for Ward squared) are used up."""
    n = len(distances)
    sizes = np.ones(n)
    merges, heights = np.empty((n - 1, 2), np.int64), np.empty(n - 1)
    chain, length = np.empty(n, np.int64), 0
    for i in range(n):
        distances[i, i] = np.inf
    for step in range(n - 1):
        if length == 0:
            chain[0], length = np.argmax(sizes > 0), 1
        while True:  # walk to nearer and nearer neighbours, until two are each other's nearest
            x = chain[length - 1]
            y = chain[length - 2] if length > 1 else -1
            least = distances[x, y] if length > 1 else np.inf
            for i in range(n):
                if distances[x, i] < least:
                    least, y = distances[x, i], i
            if y < 0:  # all that is left lies infinitely far, or is not a number
                raise ValueError("distances are not finite")
            if length > 1 and y == chain[length - 2]:
                break
            chain[length] = y
            length += 1
        length -= 2
        gone, into = min(x, y), max(x, y)
        merges[step], heights[step] = (gone, into), least
        for i in range(n):
            if sizes[i] > 0 and i != gone and i != into:
                joined = _joined(
                    rule, distances[i, gone], distances[i, into], least, sizes[gone], sizes[into], sizes[i]
                )
                distances[i, into] = distances[into, i] = joined
            distances[i, gone] = np.inf
        sizes[into] += sizes[gone]
        sizes[gone] = 0
    return merges[np.argsort(heights, kind="mergesort")]


@numba.njit(cache=True)
def _joined(rule: int, to_a: float, to_b: float, between: float, a: float, b: float, own: float) -> float:
    """The distance of a cluster to the union of a and b, from those to a and to b; and all three sizes."""
    if rule == AVERAGE:
        return (a * to_a + b * to_b) / (a + b)
    return ((own + a) * to_a + (own + b) * to_b - own * between) / (own + a + b)
