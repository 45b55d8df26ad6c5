"""dominance: what no query prefers is dropped first, and what is lost after that is bounded."""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog, nnls

from pruners import Page, parse, prune, synthetic_page, unit
from pruners.kernels.hull import hull_order
from tests.pruners.test_merging_methods import directions


def dominated(x: np.ndarray, j: int) -> bool:
    """The linear program of the paper, for scores that may be negative: is x_j a mix of the others?"""
    others = np.delete(x, j, 0)
    rows = np.vstack([others.T, np.ones(len(others))])
    return linprog(np.zeros(len(others)), A_eq=rows, b_eq=np.append(x[j], 1), bounds=(0, None)).status == 0


def distance_to_hull(point: np.ndarray, corners: np.ndarray) -> float:
    """Least squares over λ ≥ 0 with Σλ = 1, which a heavy row stands for."""
    heavy = 1e4
    weights, _ = nnls(np.vstack([corners.T, np.full(len(corners), heavy)]), np.append(point, heavy))
    return float(np.linalg.norm(point - weights / weights.sum() @ corners))


def test_of_unit_vectors_only_duplicates_are_dominated_and_they_come_last() -> None:
    x = synthetic_page(4, 5, dim=6).vectors.double().numpy()
    assert not any(dominated(x, j) for j in range(20))
    twice = np.concatenate([x, x[[3, 7]]])
    assert [j for j in range(22) if dominated(twice, j)] == [3, 7, 20, 21]
    page = Page("twice", torch.from_numpy(twice).float())
    order = prune(parse("dominance"), page, [21 / 22]).order
    assert {frozenset(pair) for pair in ((3, 20), (7, 21))} == {
        frozenset(int(i) for i in (last, *order[:20]) if np.allclose(twice[i], twice[last])) for last in order[20:]
    }
    queries = torch.nn.functional.normalize(torch.randn(200, 6), dim=1)
    left = prune(parse("dominance"), page, [20 / 22]).kept(0)
    assert torch.equal((queries @ page.vectors[left].T).amax(1), (queries @ page.vectors.T).amax(1)), "lossless"


def test_the_order_by_hand() -> None:
    """From 20°, the nearest to the mean: -100° is farthest (2·sin 60°), then 120°. Beyond the edges of that triangle
    lie 60° by cos 10° - cos 50° and 0° by cos 40° - cos 60°."""
    page = Page("circle", directions([0.0, 20, 60, 120, -100]))
    assert prune(parse("dominance"), page, [0.8]).order.tolist() == [1, 4, 3, 2, 0]
    order, distances = hull_order(page.vectors.numpy(), 1, 5)
    assert order.tolist() == [1, 4, 3, 2, 0]
    assert distances[[1, 3, 4]].tolist() == pytest.approx([3**0.5, 0.34202, 0.26604], abs=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_no_query_loses_more_than_the_distance_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = unit(torch.from_numpy(rng.standard_normal((40, 5)))).float().numpy()
    order, distances = hull_order(x, 0, 40)
    queries = rng.standard_normal((5000, 5))
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    best = (queries @ x.T).max(1)
    for k in (1, 4, 10, 20, 30):
        exact = max(distance_to_hull(x[j], x[order[:k]].astype(np.float64)) for j in order[k:])
        lost = (best - (queries @ x[order[:k]].T).max(1)).max()
        assert lost <= exact + 1e-6 <= distances[k] + 2e-6, "the kernel's distance is never below the exact one"


def test_a_mix_of_others_is_dominated_by_the_program_and_by_the_kernel() -> None:
    x = np.array([[0.0, 0], [4, 0], [0, 4], [-4, 0], [0, -4], [1, 1]], np.float32)
    assert [dominated(x.astype(np.float64), j) for j in range(6)] == [True, False, False, False, False, True]
    order, distances = hull_order(x, 1, 6)
    assert set(order[:4].tolist()) == {1, 2, 3, 4}
    assert distances[4:].max() < distances[1:4].min()
