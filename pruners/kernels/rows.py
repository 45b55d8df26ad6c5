"""Arithmetic on the rows of a matrix, shared by several kernels and methods."""

from __future__ import annotations

import numba
import numpy as np
import scipy.linalg  # noqa: F401  (compiled products use its BLAS, and only what is loaded can be held to one thread)


@numba.njit(cache=True, fastmath={"reassoc", "contract"})  # a sum in any order, so that several numbers at a time
def square(row: np.ndarray) -> float:
    """The squared norm."""
    found = row.dtype.type(0)
    for d in range(len(row)):
        found += row[d] * row[d]
    return found


@numba.njit(cache=True)
def squares(rows: np.ndarray) -> np.ndarray:
    """The squared norm of each row."""
    found = np.empty(len(rows), rows.dtype)
    for i in range(len(rows)):
        found[i] = square(rows[i])
    return found


@numba.njit(cache=True)
def set_unit(out: np.ndarray, row: np.ndarray) -> None:
    """`out` becomes the row scaled to norm 1; a zero row stays zero."""
    scale = 1 / max(np.sqrt(square(row)), row.dtype.type(1e-12))
    for d in range(len(row)):
        out[d] = row[d] * scale


@numba.njit(cache=True)
def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Rows scaled to norm 1."""
    found = np.empty(rows.shape, rows.dtype)
    for i in range(len(rows)):
        set_unit(found[i], rows[i])
    return found


@numba.njit(cache=True)
def add_rows(sums: np.ndarray, labels: np.ndarray, rows: np.ndarray) -> None:
    """Add each row to the sum that its label names; -1 names none."""
    for i in range(len(rows)):
        j = labels[i]
        if j >= 0:
            for d in range(rows.shape[1]):
                sums[j, d] += rows[i, d]


@numba.njit(cache=True)
def ordered32(bits: np.int32) -> np.int32:
    """A whole number for the bits of a float32, in the same order. The same turn leads back.

    The compiler finds extremes of whole numbers several at a time, those of floats one by one: on pages of 1,024
    vectors Voronoi takes 5 times as long with floats, ToMe 1.3 times.
    """
    return np.int32(bits ^ ((bits >> 31) & np.int32(2**31 - 1)))


@numba.njit(cache=True)
def first_highest(row: np.ndarray) -> int:
    """Where the highest of float32 numbers is; of equal ones the first. Within the row also if some are none (NaN)."""
    bits, n = row.view(np.int32), np.int32(len(row))
    top = ordered32(bits[0])
    for i in range(len(row)):
        top = max(top, ordered32(bits[i]))
    highest, place = np.int32(ordered32(top)).view(np.float32), n
    for i in range(len(row)):
        place = min(place, np.int32(i) if row[i] == highest else n)
    return int(place) if place < n else 0  # NaN is not equal to itself
