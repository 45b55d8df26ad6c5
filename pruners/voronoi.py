"""Voronoi pruning: a vector is worth the MaxSim that would be lost over its cell. Reference: Kankanampati et al. 2026,
"A Voronoi Cell Formulation for Principled Token Pruning in Late-Interaction Retrieval Models" (arXiv 2603.09933)."""

from __future__ import annotations

import numba
import numpy as np
import torch

from pruners import Page, scorer, unit


@scorer("voronoi", ordinal=True, trials=1, paper="Kankanampati et al. 2026, arXiv 2603.09933")
def voronoi(page: Page, rng: np.random.Generator, samples: int = 2048) -> torch.Tensor:
    """Remove, again and again, the vector whose loss costs sampled query directions least.

    A direction's cost of losing its best vector is the margin to the second best; margins are recomputed after every
    removal. The order of removal, read backwards, serves every budget.
    """
    directions = unit(torch.from_numpy(rng.standard_normal((samples, page.vectors.shape[1]), dtype=np.float32)))
    removed = removal_order((directions @ page.vectors.T).numpy())
    scores = torch.empty(len(page), dtype=torch.float64)
    scores[torch.from_numpy(removed)] = torch.arange(len(page), dtype=torch.float64)
    return scores


@numba.njit(cache=True)
def removal_order(similarity: np.ndarray) -> np.ndarray:
    """Vectors (columns) in order of removal; of equally cheap ones the last goes first, so ties favour low indices.

    Only directions whose best or second vector went are scanned again: about samples · N steps in all.
    """
    samples, n = similarity.shape
    alive = np.ones(n, np.bool_)
    best = np.empty(samples, np.int64)
    second = np.empty(samples, np.int64)
    cost = np.zeros(n, np.float64)
    for s in range(samples):
        best[s] = _highest(similarity[s], alive, -1)
        second[s] = _highest(similarity[s], alive, best[s])
        if second[s] >= 0:
            cost[best[s]] += similarity[s, best[s]] - similarity[s, second[s]]
    order = np.empty(n, np.int64)
    for step in range(n):
        gone = -1
        for j in range(n):
            if alive[j] and (gone < 0 or cost[j] <= cost[gone]):
                gone = j
        order[step] = gone
        alive[gone] = False
        if step >= n - 2:  # with one vector left there is no second best, and nothing more to choose
            continue
        for s in range(samples):
            if best[s] == gone:
                best[s] = second[s]
            elif second[s] == gone:
                cost[best[s]] -= similarity[s, best[s]] - similarity[s, second[s]]
            else:
                continue
            second[s] = _highest(similarity[s], alive, best[s])
            cost[best[s]] += similarity[s, best[s]] - similarity[s, second[s]]
    return order


@numba.njit(cache=True)
def _highest(row: np.ndarray, alive: np.ndarray, but: int) -> int:
    found = -1
    for j in range(len(row)):
        if alive[j] and j != but and (found < 0 or row[j] > row[found]):
            found = j
    return found
