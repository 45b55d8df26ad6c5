"""A page is checked at the border, and notices being written to."""

import pytest
import torch

from pruners import Page, PruneBoardError, Window


@pytest.mark.parametrize(
    ("vectors", "grid", "signals", "complaint"),
    [
        (torch.ones(4, 3, dtype=torch.float16), None, {}, "float32"),
        (torch.ones(0, 3), None, {}, "N >= 1"),
        (torch.ones(4), None, {}, r"\[N, d\]"),
        (torch.tensor([[1.0, float("nan")]]), None, {}, "NaN"),
        (torch.tensor([[torch.inf, -torch.inf, 1.0]]), None, {}, "NaN or infinity"),
        (torch.ones(4, 3), (2, 3), {}, "2 x 3 grid does not hold its 4"),
        (torch.ones(4, 3), None, {"eos": torch.ones(2, 5)}, r"'eos' must be a tensor \[layers, 4\]"),
    ],
)
def test_a_malformed_page_is_refused_with_its_id(vectors, grid, signals, complaint) -> None:
    with pytest.raises(PruneBoardError, match=f"page 'p7'.*{complaint}"):
        Page("p7", vectors, grid, signals)


def test_vectors_whose_sum_overflows_are_finite_all_the_same() -> None:
    vectors = torch.full((4, 3), 3e38)
    assert vectors.sum().isinf()
    assert len(Page("p7", vectors)) == 4


def test_fingerprint_sees_a_single_changed_bit_of_vectors_and_signals(page: Page) -> None:
    before = page.fingerprint()
    assert page.fingerprint() == before
    page.signals["eos"].numpy()[3, 5] += 1e-6
    assert page.fingerprint() != before


@pytest.mark.parametrize(("text", "layers"), [("11-14", [11, 12, 13, 14]), ("5", [5]), ("all", list(range(18)))])
def test_a_window_is_written_with_its_last_layer(text: str, layers: list[int]) -> None:
    window = Window.parse(text)
    assert list(range(18))[window.start : window.stop] == layers
    assert str(window) == text


def test_a_window_beyond_the_backbone_names_both() -> None:
    with pytest.raises(PruneBoardError, match=r"window 11-14 .* the 12 "):
        Window.parse("11-14").mean(torch.ones(12, 3))


@pytest.mark.parametrize("text", ["", "14-11", "-3", "a", "1-2-3", "1.5"])
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(PruneBoardError):
        Window.parse(text)
