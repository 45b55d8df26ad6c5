"""Every compiled kernel computes what its plain reference does: on random numbers, and on ones full of exact ties."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba.core.registry import CPUDispatcher

from pruners.kernels import coverage, groups, hull, kmeans, reference, rows, tome, trees, voronoi

Case = tuple[Any, ...]
Make = Callable[[np.random.Generator, np.ndarray], Case]


def vectors(rng: np.random.Generator, n: int, ties: bool) -> np.ndarray:
    """Random ones; or corners of a cube, many of them equal, whose sums, products and norms are exact."""
    drawn = rng.choice([-1, 1], (n, 4)) if ties else rng.standard_normal((n, 5))
    return drawn.astype(np.float32)


def labels(rng: np.random.Generator, x: np.ndarray) -> tuple[np.ndarray, int]:
    k = int(rng.integers(1, len(x) + 1))
    found = np.concatenate([np.arange(k), rng.integers(-1, k, len(x) - k)])
    return rng.permutation(found), k


def scaled(rng: np.random.Generator, x: np.ndarray) -> Case:
    found, k = labels(rng, x)
    return x, found, rng.random(k, np.float32)


def faulty(rng: np.random.Generator, x: np.ndarray) -> Case:
    found, k = labels(rng, x)
    return found, k + int(rng.integers(-1, 2))


def products(rng: np.random.Generator, x: np.ndarray) -> Case:
    return (x.astype(np.float64) @ x.T.astype(np.float64),)


def greedy(rng: np.random.Generator, x: np.ndarray) -> Case:
    distance = reference.cosine_distances(x).astype(np.float32)
    exact = bool((np.abs(x) == 1).all())
    weights = (rng.integers(0, 3, (2, len(x))) if exact else rng.random((2, len(x)))).astype(np.float32)
    return distance, *weights, int(rng.integers(len(x)))


def draws(rng: np.random.Generator, x: np.ndarray) -> Case:
    squared = reference.squared_distances(x)
    k = int(rng.integers(1, len(np.unique(x, axis=0)) + 1))
    return squared, rng.random((k, 3))


def start(rng: np.random.Generator, x: np.ndarray) -> Case:
    k = int(rng.integers(1, len(x) + 1))
    return x, x[rng.permutation(len(x))[:k]], int(rng.integers(1, 6)), 1e-6


CASES: dict[Callable[..., Any], Make] = {
    rows.squares: lambda rng, x: (x,),
    rows.unit_rows: lambda rng, x: (np.append(x, 0 * x[:1], 0),),
    rows.first_highest: lambda rng, x: (x.ravel(),),
    groups.faults: faulty,
    groups.scales: lambda rng, x: (x, *labels(rng, x), bool(rng.integers(2))),
    groups.merged: scaled,
    trees.cut: lambda rng, x: (trees.ward(x), int(rng.integers(1, len(x) + 1))),
    trees.euclidean: products,
    coverage.cosine_distances: lambda rng, x: (x,),
    coverage.greedy_order: greedy,
    hull.hull_order: lambda rng, x: (x, int(rng.integers(len(x))), int(rng.integers(1, len(x) + 1))),
    kmeans.squared_distances: lambda rng, x: (x,),
    kmeans.seed_centres: draws,
    kmeans.lloyd: start,
    tome.merge_sequence: lambda rng, x: (x, float(rng.choice([0.05, 0.1, 0.5]))),
    voronoi.removal_order: lambda rng, x: (x,),
}


@pytest.mark.parametrize("ties", [False, True], ids=["random", "ties"])
@pytest.mark.parametrize("kernel", CASES, ids=lambda kernel: kernel.__name__)
def test_a_kernel_computes_what_its_reference_does(kernel: Callable[..., Any], ties: bool) -> None:
    rng = np.random.default_rng(0)
    for n in [1, 2, 3, *rng.integers(4, 40, 60)]:
        case = CASES[kernel](rng, vectors(rng, n, ties))
        expected = getattr(reference, kernel.__name__)(*case)
        found = kernel(*[part.copy() if isinstance(part, np.ndarray) else part for part in case])
        parts = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
        for part, wanted in parts:
            if isinstance(part, np.ndarray) and part.dtype.kind == "f":
                np.testing.assert_allclose(part, wanted, rtol=1e-5, atol=3e-5)
            else:  # labels, orders and places are the same ones
                np.testing.assert_array_equal(part, wanted)


def test_no_kernel_and_no_reference_is_left_out() -> None:
    modules = (coverage, groups, hull, kmeans, rows, tome, trees, voronoi)
    inner = {"square", "set_unit", "add_rows", "ordered32", "sizes"}  # steps of the others
    own = [(module, value) for module in modules for value in vars(module).values() if callable(value)]
    public = {v.__name__ for m, v in own if isinstance(v, CPUDispatcher) and v.__module__ == m.__name__}
    assert {n for n in public if not n.startswith("_")} - inner <= {kernel.__name__ for kernel in CASES}
    written = {name for name, value in inspect.getmembers(reference, inspect.isfunction)}
    assert written == {kernel.__name__ for kernel in CASES}


@pytest.mark.parametrize("row", [[0.0, 0.0], [-0.0, 0.0], [0.0, -0.0], [-np.inf, -np.inf], [1.0, np.inf, np.inf]])
def test_equal_numbers_are_ties_zeros_of_either_sign_too(row: list[float]) -> None:
    assert rows.first_highest(np.array(row, np.float32)) == np.argmax(row)


@pytest.mark.parametrize("row", [[np.nan], [1.0, np.nan, 2.0], [-np.nan, -np.nan]])
def test_what_is_no_number_leads_to_a_place_in_the_row(row: list[float]) -> None:
    assert 0 <= rows.first_highest(np.array(row, np.float32)) < len(row)


def test_whole_numbers_keep_the_order_of_floats_and_lead_back_to_them() -> None:
    rising = np.array([-np.inf, -2, -1, -1e-30, 0, 1e-30, 1, 2, np.inf], np.float32)
    numbers = [rows.ordered32(number) for number in rising.view(np.int32)]
    assert numbers == sorted(numbers)
    assert np.array_equal(
        np.array([rows.ordered32(np.int32(number)) for number in numbers], np.int32).view(np.float32), rising
    )
