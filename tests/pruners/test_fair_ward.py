"""`fair_ward`: a case by hand, its tree against scipy's, what its weights promise."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import cut_tree, linkage

from pruners import Page, PruneBoardError, parse, prune, unit
from pruners.fair_ward import shares
from pruners.kernels.trees import cut
from pruners.kernels.weighted_ward import weighted_ward

BLANKS = 60


def squared(points: np.ndarray) -> np.ndarray:
    return ((points[:, None] - points[None, :]) ** 2).sum(-1).astype(np.float64)


def partition(labels: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}


def at_angles(*degrees: float) -> torch.Tensor:
    radians = torch.tensor(degrees, dtype=torch.float64) * torch.pi / 180
    return torch.stack([radians.cos(), radians.sin()], 1).float()


def margins_and_words() -> Page:
    """Blank patches that differ a little, and three words of one patch each, two of them 35 degrees apart."""
    blanks = torch.linspace(-15, 15, BLANKS).tolist()
    return Page("page", at_angles(*blanks, 80, 115, 180))


def test_a_page_of_blanks_and_words_by_hand() -> None:
    """With four vectors Ward splits the blanks and joins two words; with shared weights the blanks are one."""
    page = margins_and_words()
    k = 4 / len(page)
    fair = prune(parse("fair_ward"), page, [k]).vectors[0]
    plain = prune(parse("fair_ward(sharpness=0)"), page, [k]).vectors[0]
    for degrees in (0, 80, 115, 180):
        assert (fair @ at_angles(degrees).T).max() > 0.99999
    assert (plain @ at_angles(80).T).max() < 0.97
    assert (plain @ at_angles(115).T).max() < 0.97


def test_weights_of_alike_patches_add_up_to_one() -> None:
    x = np.eye(4)[[0, 0, 0, 1, 1, 2]]
    with np.errstate(divide="ignore"):
        logs = np.log(x @ x.T)
    np.testing.assert_allclose(shares(logs, 8.0), [1 / 3] * 3 + [1 / 2] * 2 + [1])
    np.testing.assert_allclose(shares(logs, 0.0), [1 / 6] * 6)  # all are alike: equal weights


@pytest.mark.parametrize("seed", range(5))
def test_what_points_away_is_not_alike_however_small_the_power(seed: int) -> None:
    """The formula in float64 at m = 1/20: max(0, cosine)^m is 0 where the cosine is below 0, and not 0.25."""
    points = np.random.default_rng(seed).standard_normal((200, 8)).astype(np.float32)
    page = Page("page", unit(torch.from_numpy(points)))
    x = page.vectors.double().numpy()
    cosines = np.clip(x @ x.T, None, 1)
    np.fill_diagonal(cosines, 1)
    labels = cut(weighted_ward(1 - cosines, 1 / (np.maximum(0, cosines) ** 0.05).sum(1)), 10)
    expected = unit(torch.from_numpy(np.stack([x[labels == j].sum(0) for j in range(10)])))
    found = prune(parse("fair_ward(sharpness=1.0)"), page, [0.05]).vectors[0].double()
    assert (found @ expected.T).max(1).values.min() > 1 - 1e-5


@pytest.mark.parametrize("n", [2, 3, 10, 80])
def test_with_equal_weights_the_tree_is_scipys(n: int) -> None:
    points = np.random.default_rng(n).standard_normal((n, 5))
    merges = weighted_ward(squared(points), np.full(n, 0.3))
    tree = linkage(points, "ward")
    np.testing.assert_array_equal(np.sort(merges, 1), tree[:, :2].astype(int))


@settings(max_examples=60)
@given(st.integers(2, 25), st.integers(0, 10**6))
def test_a_weight_of_three_is_three_equal_points(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, weights = rng.standard_normal((n, 4)), rng.integers(1, 5, n)
    copies = np.repeat(np.arange(n), weights)
    tree = linkage(points[copies], "ward")
    for k in range(1, n + 1):
        ours = cut(weighted_ward(squared(points), weights.astype(np.float64)), k)
        theirs = cut_tree(tree, k)[:, 0]
        assert partition(ours[copies]) == partition(theirs)


@settings(max_examples=60)
@given(st.integers(2, 20), st.integers(0, 10**6))
def test_every_merge_is_the_cheapest_there_is(n: int, seed: int) -> None:
    """Against the definition, by a plain loop: weighted means, and the price of joining each pair."""
    rng = np.random.default_rng(seed)
    points, weights = rng.standard_normal((n, 3)), rng.random(n) + 0.01
    clusters = [[i] for i in range(n)]
    merges = weighted_ward(squared(points), weights)
    for k in range(n, 0, -1):
        assert partition(cut(merges, k)) == {frozenset(members) for members in clusters}
        if k == 1:
            break
        total = [weights[c].sum() for c in clusters]
        mean = [weights[c] @ points[c] / weights[c].sum() for c in clusters]
        _, a, b = min(
            (total[a] * total[b] / (total[a] + total[b]) * ((mean[a] - mean[b]) ** 2).sum(), a, b)
            for a in range(k)
            for b in range(a)
        )
        clusters[b] += clusters.pop(a)


@pytest.mark.parametrize("rate", [0.05, 0.2])
def test_without_sharpness_it_is_ward_on_the_vectors(rate: float) -> None:
    vectors = unit(torch.from_numpy(np.random.default_rng(1).standard_normal((120, 16)).astype(np.float32)))
    page = Page("page", vectors)
    k = int(np.ceil(rate * 120))
    labels = cut_tree(linkage(vectors.double().numpy(), "ward"), k)[:, 0]
    expected = unit(torch.stack([vectors[labels == j].sum(0) for j in range(k)]))
    found = prune(parse("fair_ward(sharpness=0)"), page, [rate]).vectors[0]
    assert (found @ expected.T).max(1).values.min() > 1 - 1e-5
    assert sorted((found @ expected.T).argmax(1).tolist()) == list(range(k))


def test_more_copies_of_what_is_there_change_nothing_but_the_budget() -> None:
    """A page on which every patch stands twice, at half the ratio, keeps the same vectors. Random numbers: no ties."""
    vectors = unit(torch.from_numpy(np.random.default_rng(2).standard_normal((60, 8)).astype(np.float32)))
    once, twice = parse("fair_ward(sharpness=5.0)"), parse("fair_ward(sharpness=10.0)")  # m = sharpness · k / N is 1
    a = prune(once, Page("once", vectors), [0.2]).vectors[0]
    b = prune(twice, Page("twice", vectors.repeat(2, 1)), [0.1]).vectors[0]
    assert (a @ b.T).max(1).values.min() > 1 - 1e-5


def test_a_page_with_zero_vectors_and_one_with_a_single_patch() -> None:
    vectors = torch.cat([torch.zeros(3, 4), torch.eye(4)])
    with np.errstate(divide="raise", invalid="raise"):  # no weight is 1 / 0
        prune(parse("fair_ward(renormalize=false)"), Page("zeros", vectors), [0.2, 0.5, 1.0])
    assert len(prune(parse("fair_ward"), Page("one", torch.eye(4)[:1]), [0.1]).vectors[0]) == 1


def test_a_negative_sharpness_is_refused() -> None:
    with pytest.raises(PruneBoardError, match=r"sharpness is 0 .* or more, not -1"):
        prune(parse("fair_ward(sharpness=-1.0)"), margins_and_words(), [0.1])
