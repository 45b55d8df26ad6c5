"""Hierarchical clustering of a page's vectors, as a sequence of merges that is made once and cut short at every budget.

The nearest-neighbour chain (Müllner 2011, arXiv 1109.2378) with the updates of Lance and Williams, as scipy has it.
Compiled here because methods grow several small trees a page, and what scipy does around its loop costs more than the
loop; distances come from one matrix product instead of a loop over pairs.
"""

from __future__ import annotations

import numba
import numpy as np

from .rows import ordered64

WARD, AVERAGE = 0, 1
HERE, GONE = np.int64(-(2**63)), np.int64(2**63 - 1)


def ward(vectors: np.ndarray) -> np.ndarray:
    """Merges by Ward's rule over Euclidean distances."""
    x = vectors.astype(np.float64)
    return ward_of_products(x @ x.T)


def ward_of_products(products: np.ndarray) -> np.ndarray:
    """Merges by Ward's rule, of points whose inner products are given."""
    return merge_sequence(_squared_distances(products), WARD)


def average_cosine(vectors: np.ndarray) -> np.ndarray:
    """Merges by average linkage over 1 - cos."""
    x = vectors.astype(np.float64)
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    distances = x @ x.T
    np.subtract(1, distances, out=distances)
    return merge_sequence(np.maximum(distances, 0, out=distances), AVERAGE)


def merge_sequence(distances: np.ndarray, rule: int) -> np.ndarray:
    """Which cluster goes into which, `[N - 1, 2]`, nearest first. `distances` (for Ward squared) are used up."""
    merges, heights = _chained(distances, rule)
    return merges[np.argsort(heights, kind="stable")]


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
def _squared_distances(products: np.ndarray) -> np.ndarray:
    squares, squared, largest = np.empty(len(products)), np.empty(products.shape), 0.0
    for i in range(len(products)):
        squares[i] = products[i, i]
        largest = max(largest, squares[i])
    nothing = 1e-12 * largest  # rounding of equal vectors would otherwise order their merges
    for i in range(len(products)):
        for j in range(len(products)):
            gap = squares[i] + squares[j] - 2 * products[i, j]
            squared[i, j] = gap if gap >= nothing else 0
    return squared


@numba.njit(cache=True)
def _chained(distances: np.ndarray, rule: int) -> tuple[np.ndarray, np.ndarray]:
    """Merges in the order in which chains of nearest neighbours end, and their distances.

    Clusters that are there are drawn together whenever half of them have gone: shorter rows, and more of them in cache.
    """
    n = len(distances)
    names, sizes, joined = np.arange(n), np.ones(n), np.empty(n)
    bound = np.full(n, HERE)  # no distance counts as less than it
    merges, heights = np.empty((n - 1, 2), np.int64), np.empty(n - 1)
    chain, length, first = np.empty(n, np.int64), 0, 0
    for i in range(n):
        distances[i, i] = np.inf
    for step in range(n - 1):
        if 2 * (n - step) <= len(distances):
            distances, first = _drawn_together(distances, bound, names, sizes, chain[:length]), 0
            joined, bound = joined[: len(distances)], np.full(len(distances), HERE)
        if length == 0:
            while bound[first] == GONE:
                first += 1
            chain[0], length = first, 1
        while True:  # walk to nearer and nearer neighbours, until two are each other's nearest
            x = chain[length - 1]
            before = chain[length - 2] if length > 1 else -1
            least = _least(distances[x], bound)
            if before >= 0 and distances[x, before] == least:
                break
            nearest = _where(distances[x], bound, least)
            if nearest < 0 or length == n or least == np.inf:
                raise ValueError("distances are not finite")
            chain[length] = nearest
            length += 1
        length -= 2
        gone, into = min(x, before), max(x, before)
        merges[step, 0], merges[step, 1], heights[step] = names[gone], names[into], least
        _join(rule, joined, distances[gone], distances[into], least, sizes[gone], sizes[into], sizes)
        joined[into] = np.inf
        for i in range(len(joined)):
            distances[into, i] = distances[i, into] = joined[i]
        sizes[into] += sizes[gone]
        bound[gone] = GONE
    return merges, heights


@numba.njit(cache=True)
def _drawn_together(
    distances: np.ndarray, bound: np.ndarray, names: np.ndarray, sizes: np.ndarray, chain: np.ndarray
) -> np.ndarray:
    """The distances of the clusters that are there; `names`, `sizes` and the chain's places follow them, in place."""
    stay, place, left = np.empty(len(bound), np.int64), np.empty(len(bound), np.int64), 0
    for i in range(len(bound)):
        if bound[i] == HERE:
            stay[left], place[i], names[left], sizes[left] = i, left, names[i], sizes[i]
            left += 1
    together = np.empty((left, left))
    for i in range(left):
        for j in range(left):
            together[i, j] = distances[stay[i], stay[j]]
    for i in range(len(chain)):
        chain[i] = place[chain[i]]
    return together


@numba.njit(cache=True)
def _least(row: np.ndarray, bound: np.ndarray) -> float:
    bits, least = row.view(np.int64), GONE
    for i in range(len(row)):
        least = min(least, max(ordered64(bits[i]), bound[i]))
    return np.int64(ordered64(least)).view(np.float64)


@numba.njit(cache=True)
def _where(row: np.ndarray, bound: np.ndarray, value: float) -> int:
    """The first place that has the value."""
    for i in range(len(row)):
        if row[i] == value and bound[i] == HERE:
            return i
    return -1


@numba.njit(cache=True)
def _join(
    rule: int,
    joined: np.ndarray,
    to_a: np.ndarray,
    to_b: np.ndarray,
    between: float,
    a: float,
    b: float,
    sizes: np.ndarray,
) -> None:
    """Distances of all clusters to the union of a and b, from those to a and to b; and all sizes."""
    if rule == AVERAGE:
        for i in range(len(joined)):
            joined[i] = (a * to_a[i] + b * to_b[i]) / (a + b)
    else:
        for i in range(len(joined)):
            own = sizes[i]
            joined[i] = ((own + a) * to_a[i] + (own + b) * to_b[i] - own * between) / (own + a + b)
