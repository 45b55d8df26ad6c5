"""Structural Anchor Pruning and its variants: keep the patches that other patches look at, in a window of layers.

Reference: Liu, Hu, Zhang, Xiao, "Structural Anchor Pruning: Training-Free Multi-Vector Compression for Visual
Document Retrieval"; in-degree Eq. 2, heads Eq. 3, layers Eq. 4-5, adaptive variant App. "SAP-Adaptive".
The window belongs to the backbone, not to the method: a `sap` without one is bound by `with_window`.
"""

from __future__ import annotations

import torch

from pruners import Page, PruneBoardError, Pruner, Window, preset, scorer
from pruners.adaptive import Adaptive
from pruners.merge import Merge


@scorer("sap", needs=("indegree",), paper="Liu et al., Structural Anchor Pruning, Eq. 2-5")
def sap(page: Page, layers: Window | None = None) -> torch.Tensor:
    """Attention received from visual patches, mean over heads and over a window of layers.

    Formula:
        s_{j} = (1/|W|H) Σ_{l∈W} Σ_{h} Σ_{i∈V} A^{(l,h)}_{ij}
        keep the k largest s_{j}
    """
    return _windowed(page, "indegree", layers)


@scorer("sap_max", needs=("indegree_max",), paper="Liu et al., Structural Anchor Pruning, Eq. 3 with max over heads")
def sap_max(page: Page, layers: Window | None = None) -> torch.Tensor:
    """SAP with the maximum over heads in place of the mean.

    Formula:
        s_{j} = (1/|W|) Σ_{l∈W} max_{h} Σ_{i∈V} A^{(l,h)}_{ij}
        keep the k largest s_{j}
    """
    return _windowed(page, "indegree_max", layers)


@scorer("sap_all_to_visual", needs=("all_to_visual",), paper="Liu et al., Structural Anchor Pruning, V2V ablation")
def sap_all_to_visual(page: Page, layers: Window | None = None) -> torch.Tensor:
    """SAP with attention from all rows, the prompt's included (an ablation).

    Formula:
        s_{j} = (1/|W|H) Σ_{l∈W} Σ_{h} Σ_{all i} A^{(l,h)}_{ij}
        keep the k largest s_{j}
    """
    return _windowed(page, "all_to_visual", layers)


@preset(
    "sap_adaptive",
    output="subset",
    budget="adaptive",
    needs=("indegree",),
    paper="Liu et al., Structural Anchor Pruning, SAP-Adaptive",
)
def sap_adaptive(layers: Window | None = None) -> Pruner:
    """adaptive(sap): one global threshold on the page-wise z-score of SAP's centrality.

    Formula:
        s_{j} as SAP's
        keep (s_{j} − μ_{page})/σ_{page} > τ, τ the (1 − γ) quantile over calibration pages
    """
    return Adaptive(sap(layers=layers))


@preset(
    "sap_then_merge",
    output="merged",
    budget="fixed",
    needs=("indegree",),
    paper="a stack that Liu et al. name as possible (Related Work)",
)
def sap_then_merge(layers: Window | None = None, factor: float = 2.0) -> Pruner:
    """merge(after=sap): keep `factor` times the budget by SAP, merge these anchors down to it with Ward.

    Formula:
        keep m·k vectors by SAP
        Ward's tree, cut into k clusters; v_{C} = mean of e_{i}, i ∈ C
    """
    return Merge(sap(layers=layers), factor=factor)


def _windowed(page: Page, signal: str, layers: Window | None) -> torch.Tensor:
    if layers is None:
        raise PruneBoardError("no window of layers was given: write layers=11-14, say, or layers=all")
    return layers.mean(page.signals[signal].float())
