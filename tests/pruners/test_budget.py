"""Rule: k = ceil(γN) with an epsilon guard, 1 <= k <= N."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pruners import STANDARD, SWEEP, PruneBoardError, keep_count


@given(st.integers(1, 10_000), st.integers(1, 1000))
def test_keep_count_is_the_ceiling_of_the_exact_product(n: int, thousandths: int) -> None:
    exact = Fraction(thousandths, 1000) * n
    assert keep_count(thousandths / 1000, n) == max(1, math.ceil(exact))


@pytest.mark.parametrize(
    ("budget", "n", "k"),
    [
        (0.07, 100, 7),  # 0.07 * 100 is 7.000000000000001 in binary: a bare ceil gives 8
        (0.05, 1024, 52),  # int() gives 51, as the paper's scripts do
        (0.1, 1024, 103),  # round() gives 102
        (1 / 9, 9, 1),
        (1e-9, 5000, 1),
        (1.0, 7, 7),
    ],
)
def test_keep_count_by_hand(budget: float, n: int, k: int) -> None:
    assert keep_count(budget, n) == k


@pytest.mark.parametrize("budget", [0, -0.1, 1.0001, math.nan, math.inf])
def test_a_number_that_is_no_budget_is_refused_by_name(budget: float) -> None:
    with pytest.raises(PruneBoardError, match=r"in \(0, 1\]"):
        keep_count(budget, 10)


def test_the_standard_budgets_are_part_of_the_sweep() -> None:
    assert set(STANDARD) <= set(SWEEP)
    assert list(SWEEP) == sorted(SWEEP)
