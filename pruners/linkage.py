"""Merging by hierarchical clustering of the projected vectors: average linkage, and the libraries' token pooling.

"Token pooling" is Ward's rule on three different things. colpali-engine (0.3.18) and PyLate (up to 1.3.4) cluster the
rows of the distance matrix: `token_pooling`, with unit means in the engine and plain ones, `renormalize=false`, in
PyLate. sentence-transformers (6) and PyLate after 1.3.4 cluster by the distances themselves: `ward`. Plain Ward on the
vectors is none of these; `merge(x)` uses it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pruners import Page, reducer
from pruners.kernels import trees


@reducer("agglomerative", paper="Liu et al., Structural Anchor Pruning, Cluster-Merge as its scripts run it")
def agglomerative(page: Page, renormalize: bool = False) -> Callable[[int], np.ndarray]:
    """Average linkage on 1 - cos; cluster means as they are.

    Formula:
        d(i,j) = 1 − e_{i}·e_{j}, average linkage, cut into k clusters C
        v_{C} = mean of e_{i}, i ∈ C
    """
    tree = trees.average_cosine(page.vectors.numpy())
    return lambda k: trees.cut(tree, k)


@reducer("token_pooling", paper="Clavié et al. 2024, arXiv 2409.14683; colpali-engine's HierarchicalTokenPooler")
def token_pooling(page: Page, renormalize: bool = True) -> Callable[[int], np.ndarray]:
    """Ward pooling as colpali-engine does it: cluster means, renormalised.

    The engine hands scipy the N x N matrix 1 - E·Eᵀ as if its rows were observations. The distance between two such
    rows is ‖E(eᵢ - eⱼ)‖: that of points with the inner products E·(EᵀE)·Eᵀ, which never need the N x N x N product.

    Formula:
        Ward's tree, cut into k clusters, on the rows of 1 − E·E^{⊤}
        v_{C} = Σ_{i∈C} e_{i} / ‖Σ_{i∈C} e_{i}‖
    """
    vectors = page.vectors.numpy().astype(np.float64)
    tree = trees.ward_of_products((vectors @ (vectors.T @ vectors)) @ vectors.T)
    return lambda k: trees.cut(tree, k)


@reducer("ward", paper="Clavié et al. 2024, arXiv 2409.14683; sentence-transformers' HierarchicalTokenPooling")
def ward(page: Page, renormalize: bool = True) -> Callable[[int], np.ndarray]:
    """Ward pooling as sentence-transformers 6 does it, without protected tokens: cluster means, renormalised.

    It hands scipy the distances 1 - cos, which Ward's rule takes for Euclidean ones.

    Formula:
        Ward's tree, cut into k clusters, on d(i,j) = 1 − e_{i}·e_{j}
        v_{C} = Σ_{i∈C} e_{i} / ‖Σ_{i∈C} e_{i}‖
    """
    tree = trees.ward_cosine(page.vectors.numpy())
    return lambda k: trees.cut(tree, k)
