"""SR-guided selection on curves drawn by hand, and R(l) against a plain transcription of the paper's algorithm."""

import math

import numpy as np
import pytest
import torch

from harness.calibration.window import choose_window, layer_curve, pair_retention
from pruners import Page, Window, synthetic_page


def curve_with_boundary(layers: int, boundary: int) -> list[float]:
    """The paper's shape: a rise, a plateau, and a drop below everything from the boundary on."""
    rise = [0.7 + 0.002 * layer for layer in range(boundary)]
    return rise + [0.5] * (layers - boundary)


@pytest.mark.parametrize(("layers", "boundary", "window"), [(18, 15, "11-14"), (28, 24, "18-23"), (36, 34, "26-33")])
def test_the_papers_boundaries_give_the_papers_layers(layers: int, boundary: int, window: str) -> None:
    choice = choose_window(curve_with_boundary(layers, boundary))
    assert choice.boundary == boundary
    assert str(choice.window) == window
    assert not choice.empty_suffix


@pytest.mark.parametrize(
    ("name", "curve", "boundary", "window"),
    [
        ("rising: no layer of the end is below the median", [0.1, 0.2, 0.3, 0.4, 0.5], 5, Window(4, 5)),
        ("falling: the lower half is the suffix", [0.5, 0.4, 0.3, 0.2, 0.1], 3, Window(2, 3)),
        ("flat: nothing is below the median", [0.5] * 10, 10, Window(8, 10)),
        ("one layer", [0.5], 1, Window(0, 1)),
        ("a value at the median ends the suffix", [0.9, 0.3, 0.5, 0.2, 0.5, 0.1], 5, Window(3, 5)),
        ("a low start is no suffix", [0.1, 0.1, 0.9, 0.9, 0.9, 0.9], 6, Window(4, 6)),
        ("a window clamps at the first layer", [0.9, 0.9, 0.2, 0.1], 2, Window(1, 2)),
    ],
)
def test_curves_by_hand(name: str, curve: list[float], boundary: int, window: Window) -> None:
    choice = choose_window(curve)
    assert (choice.boundary, choice.window) == (boundary, window), name
    assert choice.empty_suffix == (boundary == len(curve))


def test_a_wide_window_clamps_at_layer_zero() -> None:
    assert choose_window([0.9, 0.9, 0.1, 0.1], rho=1.0).window == Window(0, 2)


class FakeStore:
    """A store of synthetic pages: what `layer_curve` needs of one."""

    def __init__(self) -> None:
        self.pages = [synthetic_page(6, 7, seed=i) for i in range(4)]
        self.queries = [page.vectors[3:8] * (-1 if i == 2 else 1) for i, page in enumerate(self.pages)]
        self.signals = {"indegree": 4}

    def page(self, index: int) -> Page:
        return self.pages[index]

    def query(self, index: int) -> torch.Tensor:
        return self.queries[index]


def test_the_curve_equals_a_transcription_of_the_algorithm() -> None:
    store = FakeStore()
    curve, left_out = layer_curve(store, [(i, i) for i in range(4)], gamma=0.1)
    sums, used = [0.0] * 4, 0
    for page, query in zip(store.pages, store.queries, strict=True):
        similarity = (query.double() @ page.vectors.double().T).numpy()
        full = similarity.max(1).sum()
        if full <= 0:
            continue
        used += 1
        k = math.ceil(0.1 * 42)
        for layer in range(4):
            top = np.argsort(-page.signals["indegree"][layer].numpy(), kind="stable")[:k]
            sums[layer] += similarity[:, top].max(1).sum() / full
    assert left_out == 4 - used
    np.testing.assert_allclose(curve, np.array(sums) / used, atol=1e-6)


def test_ratios_belong_to_their_pairs_whatever_their_order_and_however_many_queries_a_page_has() -> None:
    store, gammas = FakeStore(), (0.3, 0.1)
    pairs = [(1, 3), (0, 0), (1, 1), (0, 3), (1, 0), (2, 2)]
    ratios = pair_retention(store, pairs, lambda page: page.signals["indegree"][:2], gammas)
    assert ratios.shape == (6, 2, 2)
    for place, (page_index, query_index) in enumerate(pairs):
        page, query = store.pages[page_index], store.queries[query_index].double()
        full = (query @ page.vectors.double().T).amax(1).sum()
        for layer in range(2):
            for g, gamma in enumerate(gammas):
                top = np.argsort(-page.signals["indegree"][layer].numpy(), kind="stable")[: math.ceil(gamma * 42)]
                kept = (query @ page.vectors[top].double().T).amax(1).sum()
                expected = float(kept / full) if full > 0 else math.nan
                assert ratios[place, layer, g] == pytest.approx(expected, abs=1e-5, nan_ok=True)
