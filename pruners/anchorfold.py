"""AnchorFold with in-degree in the place of its centrality.

Reference: Zuo et al. 2026, "AnchorFold: A Focus-Then-Fold Framework via Recursive Attention Propagation" (arXiv
2608.08732), read in its abstract: attention is propagated for several steps within each head and joined over heads
and layers; the most central tokens are anchors; all others join the most similar one, and groups are summed up
weighted by centrality. That needs the N x N attention of every head, which no store keeps. In-degree is its first
step from equal weights, and every store has it; docs/literature.md says what the real one would cost. The window is
SAP's, and unit means are our choice.
"""

from __future__ import annotations

from pruners import Pruner, Window, preset
from pruners.merge import Merge
from pruners.sap import sap


@preset(
    "anchorfold_indegree",
    output="merged",
    budget="fixed",
    needs=("indegree",),
    paper="after Zuo et al. 2026, AnchorFold, arXiv 2608.08732",
)
def anchorfold_indegree(layers: Window | None = None) -> Pruner:
    """merge(after=sap, how=absorb, weighted=true): the most central patches are anchors, the rest is folded into them.

    AnchorFold with SAP's in-degree, the first step of its recursion, in the place of its centrality.

    Formula:
        s_{j} as SAP's; the k largest are anchors
        each patch joins the anchor of the highest e_{i}·e_{j}
        v_{C} = Σ_{i∈C} s_{i}·e_{i} / ‖Σ_{i∈C} s_{i}·e_{i}‖
    """
    return Merge(sap(layers=layers), how="absorb", weighted=True)
