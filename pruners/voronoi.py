"""Voronoi pruning: a vector is worth the MaxSim that would be lost over its cell. Reference: Kankanampati et al. 2026,
"A Voronoi Cell Formulation for Principled Token Pruning in Late-Interaction Retrieval Models" (arXiv 2603.09933)."""

from __future__ import annotations

from functools import lru_cache

import numba
import numpy as np
import torch

from pruners import Page, scorer, unit

GONE = np.float32(-1e30)
NO_NAN = {"nnan", "ninf", "nsz"}  # similarities are finite: a maximum may become one vector instruction


@scorer("voronoi", ordinal=True, trials=1, paper="Kankanampati et al. 2026, arXiv 2603.09933")
def voronoi(page: Page, rng: np.random.Generator, samples: int = 2048) -> torch.Tensor:
    """Remove, again and again, the vector whose loss costs sampled query directions least.

    A direction's cost of losing its best vector is the margin to the second best; margins are recomputed after every
    removal. The order of removal, read backwards, serves every budget.
    """
    dim = page.vectors.shape[1]
    # Fixed directions, their axes shuffled and mirrored anew for the page: distributed like fresh ones, which would
    # cost as much to draw as all the rest. Turning the page's vectors instead of the directions is the same.
    turned = page.vectors.numpy().take(rng.permutation(dim), 1) * rng.choice(np.array([-1, 1], np.float32), dim)
    removed = removal_order((_directions(samples, dim) @ torch.from_numpy(turned).T).numpy())
    scores = torch.empty(len(page), dtype=torch.float64)
    scores[torch.from_numpy(removed)] = torch.arange(len(page), dtype=torch.float64)
    return scores


@lru_cache(maxsize=4)
def _directions(samples: int, dim: int) -> torch.Tensor:
    """Directions spread evenly over the sphere; `samples` of them."""
    drawn = np.random.default_rng([samples, dim]).standard_normal((samples, dim), dtype=np.float32)
    return unit(torch.from_numpy(drawn))


@numba.njit(cache=True)
def removal_order(similarity: np.ndarray) -> np.ndarray:
    """Vectors (columns) in order of removal; of equally cheap ones the last goes first, so ties favour low indices.

    Only directions whose best or second vector went are scanned again: about samples · N steps in all. Most of that
    happens when few vectors are left, so columns are drawn together whenever half of them have gone.
    """
    samples, n = similarity.shape
    vectors = np.arange(n)  # of the columns that are there
    gone_by = np.zeros(n, np.float32)  # added to a row: GONE where a vector does not count
    best = np.empty(samples, np.int32)
    second = np.empty(samples, np.int32)
    cost = np.zeros(n, np.float64)
    for s in range(samples):
        best[s] = _highest(similarity[s], gone_by)
        second[s] = _second(similarity[s], gone_by, best[s])
        cost[best[s]] += similarity[s, best[s]] - similarity[s, second[s]]
    order = np.empty(n, np.int64)
    for step in range(n):
        if 2 * (n - step) <= len(vectors):
            left = np.flatnonzero(gone_by == 0)
            place = np.zeros(len(vectors), np.int32)
            place[left] = np.arange(len(left))
            similarity, best, second = _columns(similarity, left), place[best], place[second]
            vectors, cost, gone_by = vectors[left], cost[left], gone_by[left]
        gone = -1
        for j in range(len(vectors)):
            if gone_by[j] == 0 and (gone < 0 or cost[j] <= cost[gone]):
                gone = j
        order[step] = vectors[gone]
        gone_by[gone] = GONE
        if step >= n - 2:  # with one vector left there is no second best, and nothing more to choose
            continue
        for s in range(samples):
            if best[s] == gone:
                best[s] = second[s]
            elif second[s] == gone:
                cost[best[s]] -= similarity[s, best[s]] - similarity[s, second[s]]
            else:
                continue
            second[s] = _second(similarity[s], gone_by, best[s])
            cost[best[s]] += similarity[s, best[s]] - similarity[s, second[s]]
    return order


@numba.njit(cache=True)
def _columns(matrix: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    part = np.empty((len(matrix), len(chosen)), matrix.dtype)
    for i in range(len(matrix)):
        for j in range(len(chosen)):
            part[i, j] = matrix[i, chosen[j]]
    return part


@numba.njit(cache=True)
def _second(row: np.ndarray, gone_by: np.ndarray, best: int) -> int:
    gone_by[best] = GONE
    found = _highest(row, gone_by)
    gone_by[best] = 0
    return found


@numba.njit(cache=True, fastmath=NO_NAN)
def _highest(row: np.ndarray, gone_by: np.ndarray) -> int:
    """The first of the highest: their value in one vectorised sweep, then where it is."""
    top = np.float32(2) * GONE
    for j in range(len(row)):
        top = max(top, row[j] + gone_by[j])
    for j in range(len(row)):
        if row[j] + gone_by[j] == top:
            return j
    return 0
