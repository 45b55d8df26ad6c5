"""The oracle: what a pruner could keep if it knew the page's gold queries. A diagnostic upper bound, never ranked."""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
import torch

from pruners import Page, diagnostic


@diagnostic("oracle", paper="a diagnostic")
def oracle(page: Page, queries: Sequence[torch.Tensor]) -> torch.Tensor:
    """The vectors that the page's gold queries really hit, those that add most to their MaxSim first.

    From as many vectors as the queries hit on, the full score is kept exactly. A page without gold queries has
    nothing to hit, and its patches stay in order.

    Formula:
        next = argmax_{j} Σ_{q ∈ gold} max(0, q·e_{j} − max_{i picked} q·e_{i})
    """
    if not queries:
        return -torch.arange(len(page), dtype=torch.float64)
    similarity = (torch.cat(list(queries)) @ page.vectors.T).double()  # [query tokens, N]
    scores = similarity.amax(0) - similarity.max() - 1  # never hit: after all hit ones, by their best similarity
    hits = similarity.argmax(1).unique()
    order = _greedy(np.ascontiguousarray(similarity[:, hits].T), similarity.amin(1).numpy())
    scores[hits[order]] = torch.arange(len(page), len(page) - len(hits), -1).double()
    return scores


@numba.njit(cache=True)
def _greedy(similarity: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """Rows of `similarity [vectors, tokens]`, the one that raises what was `reached` most first; ties by index."""
    order, left = np.empty(len(similarity), np.int64), np.arange(len(similarity))
    for place in range(len(order)):
        best, most = left[0], -1.0
        for i in left:
            gain = np.maximum(similarity[i] - reached, 0).sum()
            if gain > most:
                best, most = i, gain
        order[place] = best
        reached = np.maximum(reached, similarity[best])
        left = left[left != best]
    return order
