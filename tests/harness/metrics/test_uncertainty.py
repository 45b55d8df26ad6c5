"""Rule: paired bootstrap over queries, stratified by data set; a difference whose interval contains 0 is a tie."""

import numpy as np
import pytest

from harness.metrics.uncertainty import compare, tie_groups


def data(seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Two data sets of 60 and 200 queries; three methods: good, the same with noise, and clearly worse."""
    rng = np.random.default_rng(seed)
    full = [rng.beta(4, 1, size) for size in (60, 200)]
    cells = [np.vstack([f * 0.9, f * 0.9 + rng.normal(0, 0.05, len(f)), f * 0.6]) for f in full]
    return cells, full


def test_figures_are_means_over_data_sets_and_retention_a_ratio_of_data_set_means() -> None:
    cells, full = data()
    found = compare(cells, full, resamples=50)
    for c in range(3):
        assert found.ndcg[c] == pytest.approx(np.mean([d[c].mean() for d in cells]))
        ratios = [100 * d[c].mean() / f.mean() for d, f in zip(cells, full, strict=True)]
        assert found.retention[c] == pytest.approx(np.mean(ratios))


def test_replicates_equal_a_plain_loop() -> None:
    cells, full = data()
    found = compare(cells, full, resamples=20, seed=7)
    rng = np.random.default_rng(7)
    draws = [rng.integers(f.shape[0], size=(20, f.shape[0]), dtype=np.int32) for f in full]
    for r in range(20):
        expected = np.mean(
            [100 * d[2][i[r]].mean() / f[i[r]].mean() for d, f, i in zip(cells, full, draws, strict=True)]
        )
        assert found.retention_replicates[r, 2] == pytest.approx(expected, abs=1e-3)


def test_a_method_proportional_to_the_full_model_has_no_uncertainty_left_in_its_retention() -> None:
    found = compare(*data(), resamples=300)
    sure = found.retention_interval(0)
    assert (sure.low, sure.high) == pytest.approx((90, 90), abs=1e-3)
    assert found.ndcg_interval(0).high - found.ndcg_interval(0).low > 0.01


def test_ties_and_ranks() -> None:
    found = compare(*data(), resamples=2000)
    assert found.tied(0, 1)
    assert not found.tied(0, 2)
    assert tie_groups(found, [2, 0, 1]) == [3, 1, 1]


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for trial in range(200):
        values = rng.binomial(1, 0.7, size=(1, 150)).astype(float)
        interval = compare([values], [np.ones(150)], resamples=400, seed=trial).ndcg_interval(0)
        hits += interval.low <= 0.7 <= interval.high
    assert 180 <= hits <= 199


def test_the_same_seed_gives_the_same_bytes() -> None:
    a, b = compare(*data(), resamples=100), compare(*data(), resamples=100)
    assert np.array_equal(a.retention_replicates, b.retention_replicates)
    assert not np.array_equal(a.retention_replicates, compare(*data(), resamples=100, seed=1).retention_replicates)
