"""The oracle: what a pruner could keep if it knew the page's gold queries. A diagnostic upper bound, never ranked."""

from __future__ import annotations

from collections.abc import Sequence

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


def _greedy(similarity: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """Rows of `similarity [vectors, tokens]`, the one that raises what was `reached` most first; ties by index."""
    order: list[int] = []
    left = np.ones(len(similarity), bool)
    while left.any():
        gains = np.maximum(similarity - reached, 0).sum(1)
        best = int(np.where(left, gains, -1).argmax())
        order.append(best)
        left[best] = False
        reached = np.maximum(reached, similarity[best])
    return np.array(order)
