"""Rule: Score Retention is the mean of ratios over gold pairs; the ratio of means stands beside it."""

import numpy as np
import pytest

from harness.metrics import retention
from harness.metrics.retention import GoldPairs, Retention

QRELS = {"q1": {"a": 1, "b": 2, "c": 0}, "q2": {"c": 1}, "q3": {}}


def score_retention(pruned: np.ndarray, full: np.ndarray, gold: GoldPairs) -> Retention:
    """Of whole tables `[..., queries, pages]`."""
    pairs = ..., gold.queries, gold.pages
    return retention.score_retention(pruned[pairs], full[pairs], gold.queries, len(full))


def test_score_retention_by_hand() -> None:
    gold = GoldPairs.of(QRELS, ["q1", "q2", "q3"], ["a", "b", "c"])
    full = np.array([[10.0, 20, 5], [1, 1, 40], [9, 9, 9]])
    pruned = np.array([[5.0, 18, 5], [1, 1, 20], [0, 0, 0]])
    found = score_retention(pruned, full, gold)
    assert found.score_retention == pytest.approx((0.5 + 0.9 + 0.5) / 3)
    assert found.score_retention_micro == pytest.approx(43 / 70)
    assert found.per_query[:2] == pytest.approx([0.7, 0.5])
    assert np.isnan(found.per_query[2])
    assert found.left_out == 0


def test_pairs_whose_full_score_is_not_positive_are_left_out_and_counted() -> None:
    gold = GoldPairs.of(QRELS, ["q1", "q2"], ["a", "b", "c"])
    full = np.array([[0.0, 20, 5], [1, 1, -2]])
    found = score_retention(full / 2, full, gold)
    assert (found.left_out, found.score_retention) == (2, 0.5)
    assert np.isnan(found.per_query[1])


def test_cells_are_measured_together_as_each_alone() -> None:
    gold = GoldPairs.of(QRELS, ["q1", "q2", "q3"], ["a", "b", "c"])
    full, *cells = np.random.default_rng(0).uniform(1, 9, (7, 3, 3)).astype(np.float32)
    together = score_retention(np.array(cells).reshape(2, 3, 3, 3), full, gold)
    for place, cell in zip(np.ndindex(2, 3), cells, strict=True):
        alone = score_retention(cell, full, gold)
        assert together.score_retention[place] == alone.score_retention
        assert together.score_retention_micro[place] == alone.score_retention_micro
        assert np.array_equal(together.per_query[place], alone.per_query, equal_nan=True)
