"""Each method that keeps patches, on a case computed by hand or against an independent implementation."""

import itertools
import math

import numpy as np
import pytest
import torch

from pruners import Page, PrunerError, Window, parse, prune, synthetic_page, unit


def order(text: str, page: Page, **given) -> list[int]:
    return prune(parse(text), page, [1.0], **given).order.tolist()


def tiny(**signals: list[list[float]]) -> Page:
    """Four patches in a row; signals as given."""
    tensors = {name: torch.tensor(values) for name, values in signals.items()}
    return Page("tiny", unit(torch.eye(4)), (1, 4), tensors)


def attention(layers: int, heads: int, tokens: int, seed: int) -> np.ndarray:
    """Random causal attention maps [L, H, T, T] whose rows sum to one."""
    logits = np.random.default_rng(seed).standard_normal((layers, heads, tokens, tokens))
    logits[..., ~np.tri(tokens, dtype=bool)] = -np.inf
    weights = np.exp(logits)
    return weights / weights.sum(-1, keepdims=True)


def test_sap_equals_a_transcription_of_equations_2_to_5() -> None:
    total, heads, tokens = 6, 3, 20
    visual = list(range(2, 17))
    maps = attention(total, heads, tokens, seed=1)
    alpha, beta = 0.34, 0.84
    ensemble = [
        layer for layer in range(total) if math.floor(alpha * total) <= layer < math.floor(beta * total)
    ]  # Eq. 4
    scores = []
    for j in visual:
        per_layer = []
        for layer in ensemble:
            c = [sum(maps[layer, h, i, j] for i in visual) for h in range(heads)]  # Eq. 2
            per_layer.append(sum(c) / heads)  # Eq. 3
        scores.append(sum(per_layer) / len(ensemble))  # Eq. 5
    k = math.ceil(0.2 * len(visual))
    expected = sorted(range(len(visual)), key=lambda j: (-scores[j], j))[:k]

    indegree = torch.from_numpy(maps[:, :, visual][..., visual].sum(2).mean(1)).float()
    page = Page("p", unit(torch.randn(len(visual), 8)), None, {"indegree": indegree})
    sap = parse(f"sap(layers={ensemble[0]}-{ensemble[-1]})")
    assert ensemble == [2, 3, 4]
    assert prune(sap, page, [0.2]).kept(0).tolist() == expected
    np.testing.assert_allclose(sap.score(page).numpy(), scores, rtol=1e-5)


def test_eos_equals_a_transcription_of_its_equation() -> None:
    total, heads, tokens = 4, 3, 12
    visual = list(range(1, 10))
    maps = attention(total, heads, tokens, seed=2)
    scores = [sum(maps[total - 1, h, tokens - 1, j] for h in range(heads)) / heads for j in visual]
    page = Page(
        "p", unit(torch.randn(9, 8)), None, {"eos": torch.from_numpy(maps[:, :, -1, :][..., visual].mean(1)).float()}
    )
    assert order("eos", page) == sorted(range(9), key=lambda j: (-scores[j], j))


def test_sap_variants_read_their_own_signal() -> None:
    page = tiny(indegree=[[9.0, 0, 0, 0]], indegree_max=[[0.0, 9, 0, 0]], all_to_visual=[[0.0, 0, 9, 0]])
    assert order("sap(layers=0)", page)[0] == 0
    assert order("sap_max(layers=0)", page)[0] == 1
    assert order("sap_all_to_visual(layers=0)", page)[0] == 2


def test_sap_without_a_window_says_how_to_give_one(page: Page) -> None:
    with pytest.raises(PrunerError, match=r"pruner 'sap', page .*: no window of layers was given: write layers=11-14"):
        order("sap", page)


def test_with_window_reaches_every_open_window_and_no_other() -> None:
    bound = {
        text: str(parse(text).with_window(Window(2, 5)))
        for text in ["sap", "sap(layers=1)", "merge(adaptive(sap))", "attn_fps(by=sap_max)", "sap_adaptive", "eos"]
    }
    assert bound == {
        "sap": "sap(layers=2-4)",
        "sap(layers=1)": "sap(layers=1)",
        "merge(adaptive(sap))": "merge(adaptive(sap(layers=2-4)))",
        "attn_fps(by=sap_max)": "attn_fps(sap_max(layers=2-4))",
        "sap_adaptive": "sap_adaptive(layers=2-4)",
        "eos": "eos",
    }


def test_random_is_uniform_over_patches() -> None:
    page = synthetic_page(4, 5)
    random = parse("random")
    first = [prune(random, page, [0.05], trial=t).kept(0)[0] for t in range(4000)]
    counts = np.bincount(first, minlength=20)
    assert ((counts - 200) ** 2 / 200).sum() < 43.8  # chi-square, 19 degrees of freedom, p = 0.001


def test_random_nonblank_keeps_ink_first() -> None:
    page = synthetic_page(10, 10)
    blank = page.signals["ink"][0] == 0
    inked = int((~blank).sum())
    kept = order("random_nonblank", page)
    assert not blank[kept[:inked]].any()
    assert blank[kept[inked:]].all()
    assert order("random_nonblank", page, trial=1) != kept


def test_first_k_ink_and_uniform_grid_by_hand() -> None:
    assert order("first_k", tiny()) == [0, 1, 2, 3]
    assert order("ink", tiny(ink=[[0.1, 0.7, 0.0, 0.7]])) == [1, 3, 0, 2]
    page = Page("grid", unit(torch.randn(64, 4)), (8, 8))
    lattice = order("uniform_grid", page)
    assert lattice[:4] == [4 * 8 + 4, 0, 4 * 8, 4]  # stride 4: the centre, then across, then the two beside them
    assert sorted(lattice[:16]) == [r * 8 + c for r in (0, 2, 4, 6) for c in (0, 2, 4, 6)]  # stride 2


def test_kcenter_goes_to_the_farthest_by_hand() -> None:
    degrees = torch.tensor([0.0, 10, 95, 180, 40])
    page = Page("circle", torch.stack([(degrees * torch.pi / 180).cos(), (degrees * torch.pi / 180).sin()], 1))
    # the mean points to 51°, so 40° (4) starts; 180° (3) is farthest from it; then 95° is 55° from 40°, 0° is 40°
    assert order("kcenter", page) == [4, 3, 2, 0, 1]


def test_attn_fps_and_mmr_by_hand() -> None:
    # two equal pairs at a right angle; attention prefers the first pair
    page = Page(
        "pairs", torch.tensor([[1.0, 0], [1, 0], [0, 1], [0, 1]]), None, {"eos": torch.tensor([[4.0, 3, 2, 1]])}
    )
    assert order("eos", page) == [0, 1, 2, 3]
    assert order("attn_fps", page)[:2] == [0, 2]  # 1 is a duplicate of 0: distance 0
    # λ=0.7: patch 1 scores 0.7·(2/3) + 0.3·0 = 0.467, patch 2 scores 0.7·(1/3) + 0.3·1 = 0.533
    assert order("mmr", page)[:2] == [0, 2]
    # λ=0.8: 0.8·(2/3) = 0.533 beats 0.8·(1/3) + 0.2 = 0.467
    assert order("mmr(weight=0.8)", page)[:2] == [0, 1]
    assert order("mmr(weight=1.0)", page) == order("eos", page)


def test_greedy_order_equals_a_plain_loop() -> None:
    page = synthetic_page(7, 9)
    distance = (1 - unit(page.vectors) @ unit(page.vectors).T).double().numpy()
    attention = page.signals["eos"][-1].double().numpy()
    picked = [int(attention.argmax())]
    while len(picked) < len(page):
        value = np.sqrt(attention) * np.sqrt(np.clip(distance[picked].min(0), 0, None))
        value[picked] = -1
        picked.append(int(value.argmax()))
    assert order("attn_fps", page) == picked


@pytest.mark.parametrize("vectors", [1, 2, 3])
def test_voronoi_stays_within_its_arrays_on_the_shortest_pages(vectors: int) -> None:
    """Interpreted, because compiled code does not say that it left an array."""
    from pruners.kernels.voronoi import _keys, _removal_order

    keys = _keys(np.random.default_rng(0).standard_normal((5, vectors), np.float32).view(np.int32))
    assert sorted(_removal_order.py_func(keys)) == list(range(vectors))


def test_voronoi_drops_a_duplicate_first() -> None:
    vectors = torch.cat([torch.eye(6), torch.eye(6)[:1]])
    page = Page("duplicate", vectors)
    assert 6 in order("voronoi", page)[-2:]  # one of the two equal vectors has no cell of its own
    assert set(order("voronoi", page)[:5]) <= set(range(6))


@pytest.mark.parametrize("rank", [8, 5])  # all directions are real; the last three are noise
def test_pca_leverage_equals_the_diagonal_of_the_hat_matrix(rank: int) -> None:
    page = synthetic_page(10, 12, dim=8)
    noise = 1e-7 * torch.randn(120, 8 - rank, generator=torch.Generator().manual_seed(0))
    page = Page(page.id, torch.cat([page.vectors[:, :rank], noise], 1))
    centred = page.vectors.double().numpy() - page.vectors.double().numpy().mean(0)
    hat = centred @ np.linalg.pinv(centred, rcond=1e-5)
    np.testing.assert_allclose(parse("pca_leverage").score(page).numpy(), np.diag(hat), atol=1e-8)
    u, _, _ = np.linalg.svd(centred, full_matrices=False)
    np.testing.assert_allclose(
        parse("pca_leverage(components=3)").score(page).numpy(), (u[:, :3] ** 2).sum(1), atol=1e-8
    )


def test_pca_leverage_of_a_page_with_fewer_vectors_than_dimensions_is_tied() -> None:
    assert order("pca_leverage", synthetic_page(5, 4, dim=64)) == list(range(20))


def test_the_oracle_keeps_the_full_score_with_the_vectors_that_were_hit() -> None:
    page = synthetic_page(6, 8)
    queries = [torch.randn(5, 32, generator=torch.Generator().manual_seed(i)) for i in range(3)]
    tokens = torch.cat(queries)
    hit = (tokens @ page.vectors.T).argmax(1).unique()
    kept = order("oracle", page, queries=queries)
    assert sorted(kept[: len(hit)]) == sorted(hit.tolist())
    full = (tokens @ page.vectors.T).amax(1).sum()
    at = [(tokens @ page.vectors[kept[:k]].T).amax(1).sum() for k in range(1, len(page) + 1)]
    assert all(a <= b + 1e-5 for a, b in itertools.pairwise(at))
    assert at[0] == max((tokens @ page.vectors[j]).sum() for j in hit), "the best single vector comes first"
    assert at[len(hit) - 1] == full
    assert at[len(hit) - 2] < full
    assert order("oracle", page, queries=[]) == list(range(48))
