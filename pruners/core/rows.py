"""Compiled arithmetic on the rows of a matrix that several methods share."""

from __future__ import annotations

import numba
import numpy as np
import scipy.linalg  # noqa: F401  (compiled products use its BLAS, and only what is loaded can be held to one thread)

ANY_ORDER = {"reassoc", "contract"}
"""Sums may be taken in any order, so that several numbers are added at a time."""


@numba.njit(cache=True, fastmath=ANY_ORDER)
def squares(rows: np.ndarray) -> np.ndarray:
    """The squared norm of each row."""
    found = np.empty(len(rows), rows.dtype)
    for i in range(len(rows)):
        found[i] = 0
        for d in range(rows.shape[1]):
            found[i] += rows[i, d] * rows[i, d]
    return found


@numba.njit(cache=True)
def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Rows scaled to norm 1; a zero row stays zero."""
    norms = np.sqrt(squares(rows))
    found = np.empty_like(rows)
    for i in range(len(rows)):
        scale = 1 / max(norms[i], norms.dtype.type(1e-12))
        for d in range(rows.shape[1]):
            found[i, d] = rows[i, d] * scale
    return found


@numba.njit(cache=True)
def add_rows(sums: np.ndarray, labels: np.ndarray, rows: np.ndarray) -> None:
    """Add each row to the sum that its label names; -1 names none."""
    for i in range(len(rows)):
        j = labels[i]
        if j >= 0:
            for d in range(rows.shape[1]):
                sums[j, d] += rows[i, d]
