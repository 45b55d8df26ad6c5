"""K-Means on a page's projected vectors, centroids in their place ("Semantic Clustering").

Reference: Ma et al. 2025 (arXiv 2506.04997), as the SAP paper's App. "Baseline Implementation Details" defines it.
scikit-learn iterates; only its seeding is replaced, because it takes nine tenths of the time. `seed_centres` is the
same greedy k-means++ (Arthur & Vassilvitskii 2007) on a distance matrix that all budgets share.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numba
import numpy as np
import torch

from pruners import Page, reducer, unit


@reducer("kmeans", paper="Ma et al. 2025, arXiv 2506.04997 (Semantic Clustering)", trials=1)
def kmeans(
    page: Page, rng: np.random.Generator, renormalize: bool = True, max_iter: int = 100
) -> Callable[[int], torch.Tensor]:
    """K-Means centroids, renormalised; renormalize=false is the paper's variant.

    Its start is drawn anew for each trial; one trial by default, for its cost.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    squared = torch.cdist(page.vectors, page.vectors).square_().numpy()
    seed = int(rng.integers(2**31))

    def at(k: int) -> torch.Tensor:
        # its own generator for each k: what one budget draws must not depend on the others asked for
        draws = np.random.default_rng([seed, k]).random((k, 2 + int(np.log(k))))
        start = page.vectors.numpy()[seed_centres(squared, draws)]
        with warnings.catch_warnings():  # fewer distinct vectors than k: centroids repeat, and k of them were asked for
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = KMeans(k, init=start, n_init=1, max_iter=max_iter).fit(page.vectors.numpy())
        centroids = torch.from_numpy(model.cluster_centers_)
        return unit(centroids) if renormalize else centroids

    return at


@numba.njit(cache=True)
def seed_centres(squared: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Greedy k-means++: of a few candidates drawn in proportion to squared distance, the one that lowers the sum most.

    `draws [k, candidates]` are uniform numbers in [0, 1); the first centre is uniform.
    """
    k, candidates = draws.shape
    n = len(squared)
    chosen = np.empty(k, np.int64)
    chosen[0] = int(draws[0, 0] * n)
    nearest = squared[chosen[0]].copy()
    for i in range(1, k):
        cumulative = np.cumsum(nearest.astype(np.float64))
        best, best_sum = -1, np.inf
        for c in range(candidates):
            candidate = min(n - 1, np.searchsorted(cumulative, draws[i, c] * cumulative[-1], side="right"))
            total = 0.0
            for j in range(n):
                total += min(nearest[j], squared[candidate, j])
            if total < best_sum:
                best, best_sum = candidate, total
        chosen[i] = best
        nearest = np.minimum(nearest, squared[best])
    return chosen
