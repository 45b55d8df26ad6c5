"""Statistical leverage: how much a vector alone determines the directions the page's vectors span.
Reference: Mahoney 2011, "Randomized Algorithms for Matrices and Data" (leverage scores)."""

from __future__ import annotations

import numpy as np
import torch
from scipy.linalg import lapack

from pruners import Page, scorer

REAL = 1e-10
"""Part of the largest variance below which a direction is rounding noise, which would dominate once whitened."""
DECIMALS = 8
"""Beyond these a leverage is noise. All vectors of a page with fewer of them than dimensions have the same one, and
such ties must be decided by patch index, not by what a processor rounds."""


@scorer("pca_leverage", paper="Mahoney 2011, leverage scores, arXiv 1104.5557")
def pca_leverage(page: Page, components: int | None = None) -> torch.Tensor:
    """Squared length of a centred vector in the whitened space of its principal components (all, or the first few).

    Formula:
        X = E − mean(E) = U Σ V^{⊤}
        s_{j} = ‖U_{j}‖^{2}
        keep the k largest s_{j}
    """
    x = page.vectors.numpy().astype(np.float64)
    x -= x.mean(0)
    scatter = x.T @ x
    if components is None and (factor := _factor(scatter)) is not None:
        white = torch.linalg.solve_triangular(torch.from_numpy(factor), torch.from_numpy(x).T, upper=False).numpy()
        return torch.from_numpy((white * white).sum(0).round(DECIMALS))
    variance, axes = np.linalg.eigh(scatter)
    real = variance > variance[-1] * REAL
    if components is not None:
        real[: max(0, len(real) - components)] = False
    return torch.from_numpy(((x @ axes[:, real]) ** 2 / variance[real]).sum(1).round(DECIMALS))


def _factor(scatter: np.ndarray) -> np.ndarray | None:
    """The Cholesky factor (its lower half) of a matrix whose directions are all real: it whitens at a third of the
    eigenvectors' cost.

    None if some may not be. The condition number is LAPACK's estimate, right within a small factor; hence the 100.
    Called as LAPACK's own functions, because the checks around them cost as much as the work on a page.
    """
    factor, failed = lapack.dpotrf(scatter, lower=True, clean=False)
    if failed:
        return None
    norm = np.abs(scatter).sum(0).max()
    reciprocal_condition, _ = lapack.dpocon(factor, norm, uplo="L")
    return factor if reciprocal_condition > 100 * REAL else None
