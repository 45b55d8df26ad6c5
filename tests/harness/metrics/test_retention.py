"""Rule: Score Retention is the mean of ratios over gold pairs; the ratio of means stands beside it."""

import numpy as np
import pytest

from harness.metrics.retention import GoldPairs, score_retention

QRELS = {"q1": {"a": 1, "b": 2, "c": 0}, "q2": {"c": 1}, "q3": {}}


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
