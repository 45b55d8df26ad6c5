"""Dominance: drop first what no query would miss, then what queries would miss least in the worst case.

Reference: Zong & Piwowarski 2025, "Towards Lossless Token Pruning in Late-Interaction Retrieval Models" (SIGIR 2025,
arXiv 2504.12778), read in summaries. A vector is dominated if no query prefers it to all others: if it mixes them,
which is a linear program. That paper trains a retriever whose vectors are short and often dominated. Of unit vectors
none is a mix of others, so without training only duplicates are lossless to drop, and a budget needs more: the largest
loss over all queries of norm 1 is the distance to the convex hull of what is kept (by duality), and this order makes it
small greedily. That distance is not solved for at every step but followed from above (`kernels/hull.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pruners import Page, Pruner, Subset, keep_count, pruner
from pruners.core.context import PruneContext
from pruners.kernels.hull import hull_order
from pruners.kernels.rows import unit_rows


@pruner("dominance", output="subset", budget="fixed", paper="after Zong & Piwowarski 2025, arXiv 2504.12778")
@dataclass(frozen=True)
class Dominance(Pruner):
    """Vectors farthest from the convex hull of those kept so far; dominated ones, which no query prefers, come last.

    It starts at the patch nearest to the page's mean. Going on from the paper's lossless case to a budget is ours.
    Distances are upper bounds: each vector's point of the hull takes one step towards every vector that is picked, so
    that the next one need not be the farthest by the exact distance.

    Formula:
        e_{j} is dominated if e_{j} = Σ_{i≠j} λ_{i}·e_{i}, λ ≥ 0, Σ λ_{i} = 1
        next = argmax_{j} d_{j}, d_{j} ≥ max_{‖q‖=1} (q·e_{j} − max_{i picked} q·e_{i})
        = min_{λ} ‖e_{j} − Σ_{i picked} λ_{i}·e_{i}‖, of which d_{j} is the bound after one step for each i picked
    """

    def prune(self, page: Page, budgets: Sequence[float], context: PruneContext) -> Subset:
        vectors, n = page.vectors.numpy(), len(page)
        counts = tuple(keep_count(budget, n) for budget in budgets)
        start = int((unit_rows(vectors) @ vectors.mean(0)).argmax())
        order, _ = hull_order(vectors, start, max([k for k in counts if k < n], default=1))
        rest = np.setdiff1d(np.arange(n), order)  # of the whole page, in no order that matters
        return Subset(np.concatenate([order, rest]), counts)
