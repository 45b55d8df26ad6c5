"""Each method that makes new vectors, on a case computed by hand or against the library it stands for."""

import harness.compat  # noqa: F401

import warnings

import numpy as np
import pytest
import torch
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.spatial.distance import pdist
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.exceptions import ConvergenceWarning

from pruners import Page, PrunerError, parse, prune, synthetic_page, unit
from pruners.kernels import trees
from pruners.kernels.kmeans import lloyd, seed_centres
from pruners.kmeans import TOLERANCE


def vectors(text: str, page: Page, budget: float) -> torch.Tensor:
    return prune(parse(text), page, [budget]).vectors[0]


def same_set(a: torch.Tensor, b: torch.Tensor, tolerance: float = 1e-5) -> bool:
    """Whether two sets of vectors are equal in some order."""
    if a.shape != b.shape:
        return False
    gaps = torch.cdist(a.double(), b.double())
    matched = gaps.argmin(1)
    return bool(gaps.min(1).values.max() < tolerance and len(matched.unique()) == len(a))


def means(page: Page, labels: np.ndarray) -> torch.Tensor:
    return torch.stack([page.vectors[labels == j].double().mean(0) for j in range(labels.max() + 1)]).float()


ANGLES = torch.tensor([0.0, 2, 90, 94, 180, 183])  # three pairs, far apart


@pytest.fixture
def pairs() -> Page:
    radians = ANGLES * torch.pi / 180
    return Page("pairs", torch.stack([radians.cos(), radians.sin()], 1), (3, 2))


def directions(degrees: list[float]) -> torch.Tensor:
    radians = torch.tensor(degrees) * torch.pi / 180
    return torch.stack([radians.cos(), radians.sin()], 1)


@pytest.mark.parametrize("text", ["kmeans", "agglomerative(renormalize=true)", "token_pooling", "tome", "row_pool"])
def test_three_pairs_merge_into_their_middles(pairs: Page, text: str) -> None:
    assert same_set(vectors(text, pairs, 0.5), directions([1, 92, 181.5]))


@pytest.mark.parametrize("text", ["kmeans(renormalize=false)", "agglomerative", "tome(renormalize=false)"])
def test_plain_means_are_shorter_than_one(pairs: Page, text: str) -> None:
    expected = torch.stack([pairs.vectors[i : i + 2].mean(0) for i in (0, 2, 4)])
    assert same_set(vectors(text, pairs, 0.5), expected)
    assert (vectors(text, pairs, 0.5).norm(dim=1) < 1).all()


@pytest.mark.parametrize("budget", [0.05, 0.1, 0.2])
def test_agglomerative_equals_scikit_learn(budget: float) -> None:
    page = synthetic_page(15, 20, dim=24)
    ours = vectors("agglomerative", page, budget)
    labels = AgglomerativeClustering(len(ours), metric="cosine", linkage="average").fit_predict(page.vectors.numpy())
    assert same_set(ours, torch.stack([page.vectors[labels == i].mean(0) for i in range(len(ours))]))


@pytest.mark.parametrize("budget", [0.05, 0.1, 0.2])
def test_kmeans_is_as_good_as_scikit_learn_called_directly(budget: float) -> None:
    page = synthetic_page(20, 20, dim=24)
    ours, theirs = [], []
    for trial in range(12):
        centroids = prune(parse("kmeans(renormalize=false)"), page, [budget], trial=trial).vectors[0]
        ours.append(float((torch.cdist(page.vectors, centroids).min(1).values ** 2).sum()))
        theirs.append(KMeans(len(centroids), n_init=1, random_state=trial).fit(page.vectors.numpy()).inertia_)
    assert len(set(ours)) > 1, "trials draw different starts"
    spread = np.std(theirs) / np.sqrt(12) + np.std(ours) / np.sqrt(12)
    assert np.mean(ours) < np.mean(theirs) + 4 * spread


@pytest.mark.parametrize("max_iter", [1, 2, 100])
@pytest.mark.parametrize("k", [2, 9, 40])
def test_kmeans_equals_scikit_learn_from_the_same_start(k: int, max_iter: int) -> None:
    page = synthetic_page(20, 12, dim=24)
    squared = torch.cdist(page.vectors, page.vectors).square().numpy()
    start = seed_centres(squared, np.random.default_rng(5).random((k, 4)))
    assert len(set(start.tolist())) == k
    vectors = page.vectors.numpy()
    with warnings.catch_warnings():  # one iteration does not converge, and is not meant to
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KMeans(k, init=vectors[start], n_init=1, max_iter=max_iter).fit(vectors)
    ours = lloyd(vectors, vectors[start], max_iter, TOLERANCE * vectors.var(0).mean())
    assert same_set(means(page, ours), torch.from_numpy(model.cluster_centers_), 1e-5)


def test_an_empty_cluster_takes_the_vector_farthest_from_its_centre() -> None:
    vectors = np.array([[0, 0], [1, 0], [9, 0], [10, 0], [14, 0]], np.float32)
    nobody = np.array([[0.5, 0], [10, 0], [0.5, 99]], np.float32)
    model = KMeans(3, init=nobody, n_init=1, max_iter=1).fit(vectors)
    labels = lloyd(vectors, nobody, 1, 0.0)
    assert labels.tolist() == [0, 0, 1, 1, 2]
    assert same_set(means(Page("five", torch.from_numpy(vectors)), labels), torch.from_numpy(model.cluster_centers_))


def test_kmeans_makes_k_groups_of_equal_vectors() -> None:
    page = Page("equal", torch.ones(12, 4) / 2)
    assert torch.equal(vectors("kmeans", page, 0.5), torch.ones(6, 4) / 2)


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 5, 40, 300])
@pytest.mark.parametrize("rule", ["ward", "average"])
def test_trees_equal_scipys_at_every_cut(rule: str, n: int) -> None:
    x = np.random.default_rng(n).standard_normal((n, 24))
    page = Page("random", torch.from_numpy(x).float())
    ours = trees.ward(page.vectors.numpy()) if rule == "ward" else trees.average_cosine(page.vectors.numpy())
    theirs = linkage(pdist(page.vectors.double(), "euclidean" if rule == "ward" else "cosine"), rule)
    for k in range(1, n + 1):
        _, first, labels = np.unique(cut_tree(theirs, k).ravel(), return_index=True, return_inverse=True)
        assert trees.cut(ours, k).tolist() == np.argsort(np.argsort(first))[labels].tolist()


def test_a_tree_is_cut_into_exactly_k_even_where_heights_tie() -> None:
    equal = torch.ones(10, 3)
    tree = trees.ward(equal.numpy())
    for k in range(1, 11):
        labels = trees.cut(tree, k)
        assert np.unique(labels).tolist() == list(range(k))
        firsts = [int(np.flatnonzero(labels == i)[0]) for i in range(k)]
        assert firsts == sorted(firsts), "clusters are numbered by their first patch"


def test_cuts_of_a_tree_nest() -> None:
    tree = trees.ward(synthetic_page(6, 10).vectors.numpy())
    for fine, coarse in [(30, 12), (12, 5), (5, 1)]:
        pairs = set(zip(trees.cut(tree, fine).tolist(), trees.cut(tree, coarse).tolist(), strict=True))
        assert len(pairs) == fine, "a fine cluster lies in one coarse cluster"


def test_tome_merges_by_size() -> None:
    # 0 and 1 are equal and merge first; the pair then weighs twice against 2
    page = Page("sizes", unit(torch.tensor([[1.0, 0, 0], [1, 0, 0], [0.6, 0.8, 0], [0, 0, 1]])))
    merged = vectors("tome(renormalize=false)", page, 0.5)
    assert same_set(merged, torch.tensor([[(1 + 1 + 0.6) / 3, 0.8 / 3, 0], [0, 0, 1]]))


def test_tome_equals_plain_rounds_in_float64() -> None:
    page = synthetic_page(6, 7)
    groups = [(vector, 1.0) for vector in page.vectors.double()]
    while len(groups) > 11:
        r = min(max(1, int(0.1 * len(groups))), len(groups) - 11)
        proposals = []
        for even in range(0, len(groups), 2):
            alike = {
                odd: torch.cosine_similarity(groups[even][0], groups[odd][0], dim=0).item()
                for odd in range(1, len(groups), 2)
            }
            odd = max(alike, key=lambda j: alike[j])
            proposals.append((-alike[odd], even, odd))
        for _, even, odd in sorted(proposals)[:r]:
            groups[odd] = (groups[odd][0] + groups[even][0], groups[odd][1] + groups[even][1])
            groups[even] = (groups[even][0], 0.0)
        groups = [group for group in groups if group[1]]
    expected = torch.stack([total / size for total, size in groups]).float()
    assert same_set(vectors("tome(renormalize=false)", page, 11 / 42), expected)


def test_row_pool_and_tile_pool_by_hand_and_snapped() -> None:
    page = Page("grid", torch.arange(24.0).reshape(24, 1) + torch.zeros(24, 2), (4, 6))
    rows = vectors("row_pool(renormalize=false)", page, 4 / 24)
    assert rows[:, 0].tolist() == [2.5, 8.5, 14.5, 20.5]
    assert vectors("row_pool(renormalize=false)", page, 2 / 24)[:, 0].tolist() == [5.5, 17.5]
    halves = vectors("row_pool(renormalize=false)", page, 11 / 24)  # 8 is the most that the grid allows
    assert halves[:, 0].tolist() == [1, 4, 7, 10, 13, 16, 19, 22]
    smooth = vectors("row_pool(renormalize=false, smooth=3)", page, 4 / 24)
    assert smooth[:, 0].tolist() == [5.5, 8.5, 14.5, 17.5]
    tiles = vectors("tile_pool(renormalize=false)", page, 7 / 24)  # tiles of 2 x 2: six of them
    assert tiles[:, 0].tolist() == [3.5, 5.5, 7.5, 15.5, 17.5, 19.5]
    assert len(vectors("tile_pool(renormalize=false)", page, 5 / 24)) == 4  # 3 x 3, smaller ones at the edge


def test_merge_after_sap_keeps_anchors_then_wards() -> None:
    page = synthetic_page(8, 10)
    anchors = np.sort(prune(parse("sap(layers=1-2)"), page, [0.2]).kept(0))
    model = AgglomerativeClustering(8, linkage="ward").fit(page.vectors[anchors].numpy())
    expected = torch.stack([page.vectors[anchors][model.labels_ == i].mean(0) for i in range(8)])
    assert same_set(vectors("merge(sap(layers=1-2))", page, 0.1), unit(expected))
    assert same_set(vectors("sap_then_merge(layers=1-2)", page, 0.1), unit(expected))


def test_merge_can_absorb_discarded_patches_into_their_nearest_anchor() -> None:
    page = Page("absorb", directions([0.0, 10, 90, 100]), None, {"eos": torch.tensor([[4.0, 1, 3, 2]])})
    merged = vectors("merge(eos, how=absorb)", page, 0.5)
    assert same_set(merged, directions([5, 95]))


def test_prune_then_merge_is_docpruner_then_ward_into_n_over_m() -> None:
    pages = [synthetic_page(8, 10, seed=i) for i in range(6)]
    method = parse("prune_then_merge(factor=2.0)").calibrate(pages, [0.1])
    first = parse("docpruner").calibrate(pages, [0.2])
    for page in pages:
        kept = prune(first, page, [0.2]).kept(0)
        merged = prune(method, page, [0.1]).vectors[0]
        assert len(merged) == max(1, len(kept) // 2)
    whole = parse("prune_then_merge(factor=1.0)").calibrate(pages, [0.2])
    kept = np.sort(prune(first, pages[0], [0.2]).kept(0))
    assert torch.equal(prune(whole, pages[0], [0.2]).vectors[0], pages[0].vectors[kept])


def test_hpc_stores_the_nearest_code_of_each_top_patch() -> None:
    pages = [synthetic_page(10, 10, seed=i) for i in range(3)]
    with pytest.raises(PrunerError, match="no codebook yet; call calibrate"):
        prune(parse("hpc"), pages[0], [0.1])
    method = parse("hpc(codes=16)").calibrate(pages, [0.1])
    result = prune(method, pages[0], [0.1])
    top = prune(parse("eos"), pages[0], [0.1]).kept(0)
    nearest = torch.cdist(pages[0].vectors[top], method.codebook).argmin(1)
    assert torch.equal(result.vectors[0], method.codebook[nearest])
    assert result.bits_per_vector == 4
    assert method.shared_bytes == 16 * 32 * 2
    assert [parse(f"hpc(codes={k})").bits for k in (2, 3, 128, 129, 256, 512)] == [1, 2, 7, 8, 8, 9]


def test_a_mean_without_direction_is_named_not_hidden() -> None:
    opposite = Page("opposite", torch.tensor([[1.0, 0], [-1, 0]]), (2, 1))
    with pytest.raises(PrunerError, match=r"'row_pool', page 'opposite', budget 0\.5: vector 0 has norm 0; expected 1"):
        vectors("row_pool", opposite, 0.5)
