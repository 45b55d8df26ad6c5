"""Pruning by what the last prompt token looks at in the last layer: EOS attention, and DocPruner, its adaptive form.

References: Ma et al. 2025, "Towards Storage-Efficient Visual Document Retrieval" (arXiv 2506.04997); Yan et al. 2025,
"DocPruner" (arXiv 2509.23883); definitions as in the SAP paper, App. "Baseline Implementation Details".
"""

from __future__ import annotations

import torch

from pruners import Page, Pruner, preset, scorer
from pruners.adaptive import Adaptive


@scorer("eos", needs=("eos",), paper="Ma et al. 2025, arXiv 2506.04997")
def eos(page: Page) -> torch.Tensor:
    """Attention of the last valid prompt token to a patch, last layer, mean over heads.

    Formula:
        s_{j} = (1/H) Σ_{h} A^{(L,h)}_{eos,j}
        keep the k largest s_{j}
    """
    return page.signals["eos"][-1].float()


@preset(
    "docpruner",
    output="subset",
    budget="adaptive",
    needs=("eos",),
    paper="Yan et al. 2025, DocPruner, arXiv 2509.23883",
)
def docpruner(z: float | None = None, clip: bool = False) -> Pruner:
    """adaptive(eos): keep what exceeds the page's mean + z standard deviations of EOS attention.

    Formula:
        s_{j} = (1/H) Σ_{h} A^{(L,h)}_{eos,j}
        keep s_{j} > μ_{page} + z·σ_{page}
    """
    return Adaptive(eos(), z=z, clip=clip)
