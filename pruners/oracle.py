"""The oracle: what a pruner could keep if it knew the page's gold queries. A diagnostic upper bound, never ranked."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from pruners import Page, diagnostic


@diagnostic("oracle", paper="a diagnostic")
def oracle(page: Page, queries: Sequence[torch.Tensor]) -> torch.Tensor:
    """The vectors that the page's gold queries really hit, those that add most to their MaxSim first.

    From as many vectors as the queries hit on, the full score is kept exactly. A page without gold queries has
    nothing to hit, and its patches stay in order.
    """
    if not queries:
        return -torch.arange(len(page), dtype=torch.float64)
    similarity = (torch.cat(list(queries)) @ page.vectors.T).double()  # [query tokens, N]
    scores = similarity.amax(0) - similarity.max() - 1  # never hit: after all hit ones, by their best similarity
    reached = similarity.amin(1)
    open_hits = similarity.argmax(1).unique()
    for place in range(len(open_hits)):
        gain = (similarity[:, open_hits] - reached[:, None]).clamp_min(0).sum(0)
        pick = open_hits[gain.argmax()]
        scores[pick] = len(page) - place
        reached = torch.maximum(reached, similarity[:, pick])
        open_hits = open_hits[open_hits != pick]
    return scores
