"""Ward's tree of points that do not all weigh the same. scipy's has no weights."""

from __future__ import annotations

import numba
import numpy as np


def weighted_ward(squared: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Merges `[N - 1, 2]` as `trees.cut` reads them, of points whose squared distances and weights are given.

    Clusters a, b of weights A, B cost A·B / (A + B) · ‖mean of a - mean of b‖²; the cheapest pair merges.
    """
    pairs, costs = _chain(squared.copy(), weights)
    return _numbered(pairs[np.argsort(costs, kind="stable")])


@numba.njit(cache=True)
def _chain(cost: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs as they merge along a chain of nearest neighbours, each named by one of its points, and their costs.

    Two clusters that are each other's nearest may merge at once: what others merge brings neither a nearer one
    (Bruynooghe 1977), so a chain finds all merges in about N² steps, though not in the order of their costs.
    `cost` comes as the squared distances.
    """
    n, weights = len(weights), weights.copy()
    here = np.ones(n, np.bool_)
    pairs, costs = np.empty((n - 1, 2), np.int64), np.empty(n - 1, cost.dtype)
    for i in range(n):
        for j in range(n):
            cost[i, j] *= weights[i] * weights[j] / (weights[i] + weights[j])
    chain, length, first = np.empty(n, np.int64), 0, 0
    for step in range(n - 1):
        if length == 0:
            while not here[first]:
                first += 1
            chain[0], length = first, 1
        while True:
            last = chain[length - 1]
            nearest, least = -1, np.inf
            if length > 1:  # of equally near ones the one before: the chain must end
                nearest, least = chain[length - 2], cost[last, chain[length - 2]]
            for j in range(n):
                if here[j] and j != last and (cost[last, j] < least or nearest < 0):
                    nearest, least = j, cost[last, j]
            if length > 1 and nearest == chain[length - 2]:
                break
            chain[length] = nearest
            length += 1
        length -= 2
        pairs[step, 0], pairs[step, 1], costs[step] = last, nearest, least
        _join(cost, weights, here, last, nearest)
    return pairs, costs


@numba.njit(cache=True)
def _join(cost: np.ndarray, weights: np.ndarray, here: np.ndarray, gone: int, into: int) -> None:
    """What the others' merges with the joined cluster cost: Lance and Williams' formula for Ward, with weights."""
    here[gone] = False
    a, b, least = weights[gone], weights[into], cost[gone, into]
    for j in range(len(weights)):
        if here[j] and j != into:
            c = weights[j]
            joined = ((a + c) * cost[gone, j] + (b + c) * cost[into, j] - c * least) / (a + b + c)
            cost[into, j] = cost[j, into] = joined
    weights[into] = a + b


@numba.njit(cache=True)
def _numbered(pairs: np.ndarray) -> np.ndarray:
    """Merges whose clusters are named by one of their points, named by number: merge i makes cluster N + i."""
    n = len(pairs) + 1
    above, merges = np.arange(2 * n - 1), np.empty((n - 1, 2), np.int64)
    for i in range(n - 1):
        for side in range(2):
            cluster = pairs[i, side]
            while above[cluster] != cluster:
                above[cluster] = above[above[cluster]]
                cluster = above[cluster]
            merges[i, side] = cluster
        above[merges[i, 0]] = above[merges[i, 1]] = n + i
    return merges
