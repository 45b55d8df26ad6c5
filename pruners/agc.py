"""Attention-guided clustering, in its training-free form.

Reference: Qin et al. 2026, "Multi-Vector Index Compression in Any Modality" (arXiv 2602.21202), read in its abstract
and in two reviews that agree: saliency is the last layer's attention from trained query tokens, mean over heads; the
most salient tokens are centroids; all join the nearest by cosine, once; means are weighted by saliency. Here the last
prompt token stands in for the trained ones, so these figures say nothing about the trained method. Unit means are our
choice.
"""

from __future__ import annotations

from pruners import Pruner, preset
from pruners.eos import eos
from pruners.merge import Merge


@preset("agc", output="merged", budget="fixed", needs=("eos",), paper="Qin et al. 2026, AGC, arXiv 2602.21202")
def agc() -> Pruner:
    """merge(after=eos, how=absorb, weighted=true): the most attended patches lead clusters, weighted by attention.

    Training-free: the last prompt token's attention in the place of the paper's trained query tokens'.

    Formula:
        a_{j} = (1/H) Σ_{h} A^{(L,h)}_{eos,j}; the k largest are centroids
        each patch joins the centroid of the highest e_{i}·e_{j}
        v_{C} = Σ_{i∈C} a_{i}·e_{i} / ‖Σ_{i∈C} a_{i}·e_{i}‖
    """
    return Merge(eos(), how="absorb", weighted=True)
