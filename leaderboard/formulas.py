"""What built-in methods compute, as formulas: `_{…}` and `^{…}` are sub- and superscripts.

E has the page's N unit vectors e_{i} as rows; k = ⌈γN⌉; V are the visual tokens, W the window of layers, H the heads;
A^{(l,h)} is the attention of head h in layer l, rows attend to columns.
"""

from __future__ import annotations

TOP_K = "keep the k largest s_{j}"
WARD = "Ward's tree, cut into k clusters"

FORMULAS: dict[str, tuple[str, ...]] = {
    "adaptive": (
        "z_{j} = (s_{j} − μ_{page}) / σ_{page}",
        "keep z_{j} > τ, τ the (1 − γ) quantile over calibration pages",
    ),
    "agglomerative": (
        "d(i,j) = 1 − e_{i}·e_{j}, average linkage, cut into k clusters C",
        "v_{C} = mean of e_{i}, i ∈ C",
    ),
    "attn_fps": ("next = argmax_{j} a_{j}^{α} · min_{i picked} (1 − e_{i}·e_{j})^{1−α}",),
    "docpruner": ("s_{j} = (1/H) Σ_{h} A^{(L,h)}_{eos,j}", "keep s_{j} > μ_{page} + z·σ_{page}"),
    "eos": ("s_{j} = (1/H) Σ_{h} A^{(L,h)}_{eos,j}", TOP_K),
    "first_k": ("s_{j} = −j", TOP_K),
    "hpc": (
        "c_{j} = argmin_{c} ‖e_{j} − b_{c}‖, b_{1} … b_{K} the codebook",
        "keep the k codes with the most EOS attention",
    ),
    "ink": ("s_{j} = standard deviation of the luma of patch j", TOP_K),
    "kcenter": ("next = argmax_{j} min_{i picked} (1 − e_{i}·e_{j})",),
    "kmeans": ("min Σ_{j} ‖e_{j} − c_{a(j)}‖^{2} over k centroids", "v_{c} = c / ‖c‖"),
    "merge": ("keep m·γN vectors by another method", f"{WARD}; v_{{C}} = mean of e_{{i}}, i ∈ C"),
    "mmr": ("next = argmax_{j} λ·a_{j} + (1 − λ)·min_{i picked} (1 − e_{i}·e_{j})",),
    "oracle": ("next = argmax_{j} Σ_{q ∈ gold} max(0, q·e_{j} − max_{i picked} q·e_{i})",),
    "pca_leverage": ("X = E − mean(E) = U Σ V^{⊤}", "s_{j} = ‖U_{j}‖^{2}", TOP_K),
    "prune_then_merge": ("n vectors by DocPruner at m·γ", "Ward into ⌊n/m⌋ clusters; v_{C} = mean of e_{i}, i ∈ C"),
    "random": ("s_{j} ~ U(0,1)", TOP_K),
    "random_nonblank": ("s_{j} ~ U(0,1) + 1 if patch j has ink", TOP_K),
    "row_pool": ("v_{b} = mean of e_{i} over band b of the grid's rows",),
    "sap": ("s_{j} = (1/|W|H) Σ_{l∈W} Σ_{h} Σ_{i∈V} A^{(l,h)}_{ij}", TOP_K),
    "sap_adaptive": (
        "s_{j} as SAP's",
        "keep (s_{j} − μ_{page})/σ_{page} > τ, τ the (1 − γ) quantile over calibration pages",
    ),
    "sap_all_to_visual": ("s_{j} = (1/|W|H) Σ_{l∈W} Σ_{h} Σ_{all i} A^{(l,h)}_{ij}", TOP_K),
    "sap_max": ("s_{j} = (1/|W|) Σ_{l∈W} max_{h} Σ_{i∈V} A^{(l,h)}_{ij}", TOP_K),
    "sap_then_merge": ("keep m·k vectors by SAP", f"{WARD}; v_{{C}} = mean of e_{{i}}, i ∈ C"),
    "tile_pool": ("v_{t} = mean of e_{i} over square tile t of the grid",),
    "token_pooling": (f"{WARD}, on the rows of 1 − E·E^{{⊤}}", "v_{C} = Σ_{i∈C} e_{i} / ‖Σ_{i∈C} e_{i}‖"),
    "tome": (
        "each even e_{i} proposes to argmax_{odd j} e_{i}·e_{j}",
        "the r most similar pairs merge, weighted by size; repeat down to k",
    ),
    "uniform_grid": ("s_{j} = bit-reversed place of patch j, counted from the page's centre", TOP_K),
    "voronoi": (
        "cost_{j} = Σ_{q: j is best} (q·e_{j} − second best), q random directions",
        "remove the cheapest; repeat down to k",
    ),
}
