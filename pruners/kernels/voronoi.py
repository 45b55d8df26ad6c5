"""The order in which Voronoi pruning removes vectors."""

from __future__ import annotations

import numba
import numpy as np

from .rows import ordered32

GONE, HERE = np.int32(-(2**31)), np.int32(2**31 - 1)


def removal_order(similarity: np.ndarray) -> np.ndarray:
    """Vectors (columns) in order of removal, where rows are directions and stand for their opposites too.

    Of equally cheap vectors the last goes first, so ties favour low indices.
    """
    return _removal_order(_keys(similarity.view(np.int32)))


@numba.njit(cache=True)
def _removal_order(keys: np.ndarray) -> np.ndarray:
    """Sample s is the direction s / 2, or its opposite if s is odd. Only samples whose best or second vector went are
    scanned again: about samples · N steps in all. Most of that happens when few vectors are left, so columns are drawn
    together whenever half of them have gone.
    """
    samples, n = 2 * len(keys), keys.shape[1]
    if n == 1:  # it has no second best
        return np.zeros(1, np.int64)
    vectors = np.arange(n)  # of the columns that are there
    bound = _bound(n, n)
    best, second = np.empty(samples, np.int32), np.empty(samples, np.int32)
    cost = np.zeros(n)
    # The samples that a vector is best or second of, as linked lists: entry 2s, or 2s + 1, is sample s.
    first, following = np.full(n, -1, np.int32), np.empty(2 * samples, np.int32)
    for s in range(samples):
        row, flip = _sample(keys, s)
        best[s] = _highest(row, flip, bound, -1)
        second[s] = _highest(row, flip, bound, best[s])
        cost[best[s]] += _margin(row, best[s], second[s])
        for entry, vector in ((2 * s, best[s]), (2 * s + 1, second[s])):
            following[entry], first[vector] = first[vector], entry
    order = np.empty(n, np.int64)
    for step in range(n):
        if 2 * (n - step) <= len(vectors):
            place, stay, left = np.zeros(n, np.int32), np.empty(n, np.int64), 0
            for j in range(len(vectors)):
                if bound[j] == HERE:
                    vectors[left], cost[left], first[left] = vectors[j], cost[j], first[j]
                    place[j], stay[left] = left, j
                    left += 1
            keys = _columns(keys, stay[:left])
            vectors, bound = vectors[:left], _bound(left, keys.shape[1])
            for s in range(samples):
                best[s], second[s] = place[best[s]], place[second[s]]
        gone = -1
        for j in range(len(vectors)):
            if bound[j] == HERE and (gone < 0 or cost[j] <= cost[gone]):
                gone = j
        order[step] = vectors[gone]
        bound[gone] = GONE
        if step >= n - 2:  # with one vector left there is no second best, and nothing more to choose
            continue
        entry = first[gone]
        while entry >= 0:
            s, after = entry >> 1, following[entry]
            row, flip = _sample(keys, s)
            if best[s] == gone:
                best[s] = second[s]
            else:
                cost[best[s]] -= _margin(row, best[s], second[s])
            second[s] = _highest(row, flip, bound, best[s])
            cost[best[s]] += _margin(row, best[s], second[s])
            following[entry], first[second[s]] = first[second[s]], entry
            entry = after
    return order


@numba.njit(cache=True)
def _bound(vectors: int, columns: int) -> np.ndarray:
    """What a column's keys are bounded by: GONE where a vector does not count."""
    bound = np.empty(columns, np.int32)
    for j in range(columns):
        bound[j] = HERE if j < vectors else GONE
    return bound


# Similarities are compared by whole numbers in the same order (`ordered32` says why). That of -x is that of x with all
# bits turned over.


@numba.njit(cache=True)
def _keys(bits: np.ndarray) -> np.ndarray:
    keys = np.empty(bits.shape, np.int32)
    for i in range(len(bits)):
        for j in range(bits.shape[1]):
            keys[i, j] = ordered32(bits[i, j])
    return keys


@numba.njit(cache=True)
def _margin(row: np.ndarray, a: int, b: int) -> np.float32:
    return abs(np.int32(ordered32(row[a])).view(np.float32) - np.int32(ordered32(row[b])).view(np.float32))


@numba.njit(cache=True)
def _sample(keys: np.ndarray, s: int) -> tuple[np.ndarray, np.int32]:
    """Keys of the direction that sample s is of, and what turns them into its own."""
    return keys[s >> 1], np.int32(-(s & 1))


@numba.njit(cache=True)
def _columns(keys: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The chosen columns, and as many more as fill the last eight; these are never looked at."""
    part = np.zeros((len(keys), -(-len(chosen) // 8) * 8), np.int32)
    for i in range(len(keys)):
        for j in range(len(chosen)):
            part[i, j] = keys[i, chosen[j]]
    return part


@numba.njit(cache=True)
def _highest(row: np.ndarray, flip: np.int32, bound: np.ndarray, but: int) -> np.int32:
    """The first of the highest but one: their key in one vectorised sweep, where it is in another."""
    top, skipped = GONE, np.int32(but)
    for j in range(len(row)):
        key = min(np.int32(row[j] ^ flip), bound[j])
        top = max(top, key if np.int32(j) != skipped else GONE)
    place = n = np.int32(len(row))
    for j in range(len(row)):
        key = min(np.int32(row[j] ^ flip), bound[j])
        place = min(place, np.int32(j) if (key == top) & (np.int32(j) != skipped) else n)
    return place
