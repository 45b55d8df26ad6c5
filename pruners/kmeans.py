"""K-Means on a page's projected vectors, centroids in their place ("Semantic Clustering").

Reference: Ma et al. 2025 (arXiv 2506.04997), as the SAP paper's App. "Baseline Implementation Details" defines it.
The rules are scikit-learn's: greedy k-means++ (Arthur & Vassilvitskii 2007), Lloyd's iterations, its tolerance, its
way with empty clusters. Compiled here because its seeding and its calls cost several times the arithmetic on a page
(8 times on 1,024 vectors); the seeding works on a distance matrix that all budgets share.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pruners import Page, reducer
from pruners.kernels.kmeans import lloyd, seed_centres, squared_distances

TOLERANCE = 1e-4
"""Iterations end when the centroids' squared moves sum to less than this part of the mean variance of a dimension."""


@reducer("kmeans", paper="Ma et al. 2025, arXiv 2506.04997 (Semantic Clustering)", trials=1)
def kmeans(
    page: Page, rng: np.random.Generator, renormalize: bool = True, max_iter: int = 100
) -> Callable[[int], np.ndarray]:
    """K-Means centroids, renormalised; renormalize=false is the paper's variant.

    Its start is drawn anew for each trial; one trial by default, for its cost.

    Formula:
        min Σ_{j} ‖e_{j} − c_{a(j)}‖^{2} over k centroids
        v_{c} = c / ‖c‖
    """
    vectors = page.vectors.numpy()
    squared = squared_distances(vectors)
    tolerance = TOLERANCE * float(squared.mean()) / 2 / vectors.shape[1]  # pairs lie twice the variance apart
    seed = int(rng.integers(2**31))

    def at(k: int) -> np.ndarray:
        # its own generator for each k: what one budget draws must not depend on the others asked for
        draws = np.random.default_rng([seed, k]).random((k, 2 + int(np.log(k))))
        return lloyd(vectors, vectors[seed_centres(squared, draws)], max_iter, tolerance)

    return at
