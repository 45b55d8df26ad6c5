"""Merging by clustering the projected vectors: K-Means, average linkage, and Ward as colpali-engine pools."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import torch

from pruners import Page, reducer, unit
from pruners.core import trees


@reducer("kmeans", paper="Ma et al. 2025, arXiv 2506.04997 (Semantic Clustering)", trials=1)
def kmeans(
    page: Page, k: int, rng: np.random.Generator, renormalize: bool = True, n_init: int = 1, max_iter: int = 100
) -> torch.Tensor:
    """K-Means centroids, renormalised; renormalize=false is the paper's variant.

    Its start is drawn anew for each trial; one trial by default, for its cost.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    model = KMeans(k, n_init=n_init, max_iter=max_iter, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():  # fewer distinct vectors than k: centroids repeat, which is what k was asked for
        warnings.simplefilter("ignore", ConvergenceWarning)
        centroids = torch.from_numpy(model.fit(page.vectors.numpy()).cluster_centers_)
    return unit(centroids) if renormalize else centroids


@reducer("agglomerative", paper="Liu et al., Structural Anchor Pruning, its scripts' Cluster-Merge")
def agglomerative(page: Page, renormalize: bool = False) -> Callable[[int], torch.Tensor]:
    """Average linkage on 1 - cos, cluster means as they are."""
    tree = trees.average_cosine(page.vectors)

    def at(k: int) -> torch.Tensor:
        vectors = trees.means(page.vectors, trees.cut(tree, k), k)
        return unit(vectors) if renormalize else vectors

    return at


@reducer("token_pooling", paper="Clavié et al. 2024, arXiv 2409.14683; colpali-engine HierarchicalTokenPooler")
def token_pooling(page: Page, renormalize: bool = True) -> Callable[[int], torch.Tensor]:
    """Ward pooling as colpali-engine does it: cluster means, renormalised.

    The engine hands scipy the N x N matrix 1 - E·Eᵀ as if its rows were observations. The distance between two such
    rows is ‖E(eᵢ - eⱼ)‖, so the rows of E·(EᵀE)^½ have the same distances in d dimensions instead of N.
    """
    values, basis = torch.linalg.eigh((page.vectors.double().T @ page.vectors.double()))
    rows = page.vectors.double() @ (basis * values.clamp_min(0).sqrt())
    tree = trees.ward(rows)

    def at(k: int) -> torch.Tensor:
        vectors = trees.means(page.vectors, trees.cut(tree, k), k)
        return unit(vectors) if renormalize else vectors

    return at
