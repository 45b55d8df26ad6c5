"""Statistical leverage: how much a vector alone determines the directions the page's vectors span.
Reference: Mahoney 2011, "Randomized Algorithms for Matrices and Data" (leverage scores)."""

from __future__ import annotations

import torch

from pruners import Page, scorer


@scorer("pca_leverage", paper="Mahoney 2011, leverage scores, arXiv 1104.5557")
def pca_leverage(page: Page, components: int | None = None) -> torch.Tensor:
    """Squared length of a centred vector in the whitened space of its principal components (all, or the first few)."""
    x = page.vectors.double() - page.vectors.double().mean(0)
    variance, axes = torch.linalg.eigh(x.T @ x)
    real = variance > variance[-1] * 1e-10  # the page's rank: noise directions would dominate once whitened
    if components is not None:
        real[: max(0, len(real) - components)] = False
    return ((x @ axes[:, real]) ** 2 / variance[real]).sum(1)
