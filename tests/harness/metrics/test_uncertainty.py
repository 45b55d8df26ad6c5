"""Rule: paired bootstrap over queries, stratified by data set; a difference whose interval contains 0 is a tie."""

import numpy as np
import pytest

from harness.metrics.uncertainty import Comparison, compare, quantiles, tie_groups


def data(seed: int = 0) -> list[list[np.ndarray]]:
    """A data set of 60 queries, and one of 200 in two languages; three methods: good, the same with noise, worse."""
    rng = np.random.default_rng(seed)

    def subset(size: int) -> np.ndarray:
        full = rng.beta(4, 1, size)
        return np.vstack([full * 0.9, full * 0.9 + rng.normal(0, 0.05, size), full * 0.6, full])

    return [[subset(60)], [subset(50), subset(150)]]


def test_figures_are_means_over_data_sets_and_retention_a_ratio_of_data_set_means() -> None:
    (only,), (first, second) = data()
    found = compare(data(), resamples=50)
    for c in range(3):
        means = [(only[r].mean(), (first[r].mean() + second[r].mean()) / 2) for r in (c, 3)]
        assert found.ndcg[c] == pytest.approx(sum(means[0]) / 2)
        ratios = [100 * pruned / full for pruned, full in zip(*means, strict=True)]
        assert found.retention[c] == pytest.approx(sum(ratios) / 2)


def test_replicates_equal_a_plain_loop() -> None:
    found = compare(data(), resamples=20, seed=7)
    rng = np.random.default_rng(7)
    draws = [[rng.integers(v.shape[1], size=(20, v.shape[1]), dtype=np.int32) for v in subsets] for subsets in data()]
    for r in range(20):
        ratios = []
        for subsets, drawn in zip(data(), draws, strict=True):
            means = [[v[row][i[r]].mean() for v, i in zip(subsets, drawn, strict=True)] for row in (2, 3)]
            ratios.append(100 * np.mean(means[0]) / np.mean(means[1]))
        assert found.retention_replicates[r, 2] == pytest.approx(np.mean(ratios), abs=1e-3)


def test_a_method_proportional_to_the_full_model_has_no_uncertainty_left_in_its_retention() -> None:
    found = compare(data(), resamples=300)
    sure = found.retention_interval(0)
    assert (sure.low, sure.high) == pytest.approx((90, 90), abs=1e-3)
    assert found.ndcg_interval(0).high - found.ndcg_interval(0).low > 0.01


def test_ties_and_ranks() -> None:
    found = compare(data(), resamples=2000)
    assert found.tied(0, 1)
    assert not found.tied(0, 2)
    assert tie_groups(found, [2, 0, 1]) == [3, 1, 1]


def cells(retention: list[float], replicates: list[np.ndarray]) -> Comparison:
    """Methods with these figures and these resampled figures."""
    figures, resampled = np.array(retention), np.stack(replicates, axis=1)
    return Comparison(figures / 100, resampled / 100, figures, resampled)


def test_the_same_method_twice_shares_a_rank() -> None:
    """Their difference is 0 on every resample: the interval is [0, 0], and it contains 0."""
    ((only,), _) = data()
    found = compare([[only[[2, 0, 0, 0, 3]]]], resamples=200)
    gap = found.difference(1, 3)
    assert (gap.value, gap.low, gap.high) == (0, 0, 0)
    assert found.tied(1, 3)
    assert tie_groups(found, [0, 1, 2, 3]) == [4, 1, 1, 1]


@pytest.mark.parametrize(("nearest", "tie"), [(0.0, True), (1e-9, False), (-1e-9, True)])
def test_an_interval_that_only_touches_zero_contains_it(nearest: float, tie: bool) -> None:
    """Of 1,000 resampled differences the smallest 50 are `nearest`, all others 1: so the lower bound is `nearest`.

    Seen from the other method the same difference has the upper bound `-nearest`.
    """
    above = np.full(1000, 1.0)
    above[:50] = nearest
    found = cells([91, 90], [above, np.zeros(1000)])
    assert (found.difference(0, 1).low, found.difference(1, 0).high) == (nearest, -nearest)
    assert found.tied(0, 1) == found.tied(1, 0) == tie
    assert tie_groups(found, [0, 1]) == [1, 1 if tie else 2]


def test_a_rank_is_shared_with_the_best_of_a_group_not_with_the_one_above() -> None:
    """First and second are tied, second and third too, first and third not: the third leads a group of its own."""
    wide = np.linspace(-3, 3, 1001)
    found = cells([90, 88, 86, 84], [np.full(1001, 90.0), 88 + wide, np.full(1001, 86.0), 84 + wide])
    assert found.tied(0, 1)
    assert found.tied(1, 2)
    assert not found.tied(0, 2)
    assert tie_groups(found, [0, 1, 2, 3]) == [1, 1, 3, 3]
    assert tie_groups(found, [3, 2, 1]) == [3, 1, 1], "without the first, the second leads"


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for trial in range(200):
        values = rng.binomial(1, 0.7, size=(1, 150)).astype(float)
        interval = compare([[np.vstack([values, np.ones(150)])]], resamples=400, seed=trial).ndcg_interval(0)
        hits += interval.low <= 0.7 <= interval.high
    assert 180 <= hits <= 199


def test_the_same_seed_gives_the_same_bytes() -> None:
    a, b = compare(data(), resamples=100), compare(data(), resamples=100)
    assert np.array_equal(a.retention_replicates, b.retention_replicates)
    assert not np.array_equal(a.retention_replicates, compare(data(), resamples=100, seed=1).retention_replicates)


def test_where_the_full_model_finds_nothing_retention_has_no_meaning() -> None:
    found = compare([[np.array([[0.5, 0.0], [0.0, 0.0]])]], resamples=20)
    assert np.isnan(found.retention[0])
    assert np.isnan(found.retention_interval(0).low)
    assert found.ndcg[0] == 0.25
    rarely = np.zeros((2, 30))
    rarely[:, 0] = 1  # one query in thirty is found: a third of the resamples miss it
    interval = compare([[rarely]], resamples=500).retention_interval(0)
    assert (interval.low, interval.high) == (100, 100)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 1000, 10_000])
def test_quantiles_are_those_of_numpy_to_the_last_bit(count: int) -> None:
    rng, shares = np.random.default_rng(count), (0.025, 0.5, 0.975, 0.3)
    for values in (rng.normal(size=count), rng.choice([0.0, 63.1, 100.0], count)):
        assert quantiles(values, shares) == np.quantile(values, shares).tolist()
