"""Extremes found by whole numbers are those that floats have."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pruners.core.rows import first_highest, ordered32, ordered64

FLOATS = st.floats(width=32, allow_nan=False)


@given(arrays(np.float32, st.integers(1, 50), elements=FLOATS))
def test_the_first_of_the_highest_is_numpys_argmax(row: np.ndarray) -> None:
    assert first_highest(row) == row.argmax()


@pytest.mark.parametrize("row", [[0.0, 0.0], [-0.0, 0.0], [0.0, -0.0], [-np.inf, -np.inf], [1.0, np.inf, np.inf]])
def test_equal_numbers_are_ties_zeros_of_either_sign_too(row: list[float]) -> None:
    assert first_highest(np.array(row, np.float32)) == np.argmax(row)


@pytest.mark.parametrize("row", [[np.nan], [1.0, np.nan, 2.0], [-np.nan, -np.nan]])
def test_what_is_no_number_leads_to_a_place_in_the_row(row: list[float]) -> None:
    assert 0 <= first_highest(np.array(row, np.float32)) < len(row)


@pytest.mark.parametrize(("kind", "bits", "ordered"), [("f4", np.int32, ordered32), ("f8", np.int64, ordered64)])
def test_whole_numbers_keep_the_order_of_floats_and_lead_back_to_them(kind: str, bits: type, ordered) -> None:
    rising = np.array([-np.inf, -2, -1, -1e-30, 0, 1e-30, 1, 2, np.inf], kind)
    numbers = [ordered(number) for number in rising.view(bits)]
    assert numbers == sorted(numbers)
    assert np.array_equal(np.array([ordered(bits(number)) for number in numbers], bits).view(kind), rising)
