"""The one way a pruner is run: `prune` checks what it needs, guards the page, and checks what comes back.

Nothing is repaired. An error names the pruner, the page, what was returned and what was expected.
"""

from __future__ import annotations

import traceback
from collections.abc import Collection, Sequence

import numba
import numpy as np
import torch

from .budget import keep_count
from .contract import Diagnostic, Given, Merged, Pruner, Subset
from .errors import PruneBoardError, PrunerError
from .groups import first_outside
from .page import Page
from .rows import squares

SEED = 42
UNIT_NORM_TOLERANCE = 1e-3  # vectors may have come from a float16 store
SAME_VECTOR = np.float32(1e-5)  # means may be summed in another order


def prune(
    pruner: Pruner,
    page: Page,
    budgets: Sequence[float],
    *,
    seed: int = SEED,
    trial: int = 0,
    queries: Sequence[torch.Tensor] | None = None,
) -> Subset | Merged:
    """Run `pruner` on `page` at all `budgets`. Gold `queries` are given to diagnostics, and to nothing else."""
    require(pruner, {*page.signals, *(["grid"] if page.grid else [])}, f"page {page.id!r}")
    if isinstance(pruner, Diagnostic) != (queries is not None):
        way = "give it the page's gold queries" if queries is None else "only a diagnostic may see queries"
        raise PrunerError(f"pruner {str(pruner)!r}, page {page.id!r}: {way}")
    where = f"pruner {str(pruner)!r}, page {page.id!r}"
    given = Given(page.id, seed, trial, tuple(queries) if queries is not None else None)
    before = page.original
    try:
        result = pruner.prune(page, budgets, given)
    except PrunerError:
        raise
    except PruneBoardError as error:
        raise PrunerError(f"{where}: {error}") from error
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise PrunerError(
            f"{where}: failed with {type(error).__name__}: {error} ({last.filename}:{last.lineno})"
        ) from error
    if page.fingerprint() != before:
        raise PrunerError(f"{where}: it wrote into the page; work on a copy (`page.vectors.clone()`)")
    return checked(pruner, page, budgets, result)


def require(pruner: Pruner, available: Collection[str], giver: str) -> None:
    """Refuse a pruner whose signals are not there, before any work."""
    missing = [need for need in pruner.needs if need not in available]
    if missing:
        has = ", ".join(sorted(available)) or "none"
        raise PrunerError(
            f"pruner {str(pruner)!r} needs {', '.join(missing)}, which {giver} does not have (it has: {has})"
        )


def checked(pruner: Pruner, page: Page, budgets: Sequence[float], result: object) -> Subset | Merged:
    """The result, if it keeps the contract for every budget."""
    where = f"pruner {str(pruner)!r}, page {page.id!r}"
    if isinstance(result, Subset):
        _check_order(where, page, result)
        counts = list(result.counts)
    elif isinstance(result, Merged):
        for budget, vectors in zip(budgets, result.vectors, strict=False):
            _check_vectors(f"{where}, budget {budget:g}", page, vectors, pruner.unit_norm)
        _check_groups(where, page, result)
        counts = [len(vectors) for vectors in result.vectors]
    else:
        raise PrunerError(f"{where}: returned {type(result).__name__}; expected Subset or Merged")
    if len(counts) != len(budgets):
        raise PrunerError(f"{where}: returned results for {len(counts)} budgets; expected {len(budgets)}")
    for budget, count in zip(budgets, counts, strict=True):
        k = keep_count(budget, len(page))
        allowed = {"fixed": (k, k), "snapped": (1, k), "adaptive": (1, len(page))}[pruner.budget_kind]
        if not allowed[0] <= count <= allowed[1]:
            expected = f"{k}" if allowed[0] == allowed[1] else f"{allowed[0]} to {allowed[1]}"
            raise PrunerError(
                f"{where}, budget {budget:g}: returned {count} vectors; expected {expected} of {len(page)}"
            )
    return result


def _check_groups(where: str, page: Page, result: Merged) -> None:
    """Groups stand for the vectors when pages are scored: they must make the same."""
    for groups, vectors in zip(result.groups, result.vectors, strict=False):
        if groups is None:
            continue
        labels, scales = groups.labels, groups.scales
        whole = labels.dtype == np.int64 and labels.shape == (len(page),) and scales.shape == (len(vectors),)
        if not whole or first_outside(labels, len(scales)) >= 0:
            raise PrunerError(
                f"{where}: its groups do not label {len(page)} patches with 0 to {len(vectors) - 1} or -1"
            )
        if not _close(groups.vectors(page.vectors).numpy(), vectors.numpy(), SAME_VECTOR):
            raise PrunerError(f"{where}: its vectors are not the means of the groups it names")


def _check_order(where: str, page: Page, result: Subset) -> None:
    order = result.order
    if not isinstance(order, np.ndarray) or order.ndim != 1 or order.dtype.kind not in "iu":
        raise PrunerError(f"{where}: the order must be a one-dimensional integer array, not {type(order).__name__}")
    if len(order) < max(result.counts, default=0):
        raise PrunerError(f"{where}: the order has {len(order)} patches; expected at least {max(result.counts)}")
    at = _first_fault(order, len(page))
    if at >= 0 and 0 <= order[at] < len(page):
        raise PrunerError(f"{where}: returned patch {order[at]} {(order == order[at]).sum()} times; expected once")
    if at >= 0:
        raise PrunerError(f"{where}: returned patch {order[at]}; expected patches from 0 to {len(page) - 1}")


@numba.njit(cache=True)
def _first_fault(order: np.ndarray, n: int) -> int:
    """Where an order first leaves the page or comes back to a patch; -1 if nowhere."""
    seen = np.zeros(n, np.bool_)
    for i in range(len(order)):
        if order[i] < 0 or order[i] >= n or seen[order[i]]:
            return i
        seen[order[i]] = True
    return -1


def _check_vectors(where: str, page: Page, vectors: object, unit_norm: bool) -> None:
    width = page.vectors.shape[1]
    if not isinstance(vectors, torch.Tensor) or vectors.dtype != torch.float32 or vectors.ndim != 2:
        got = f"{vectors.dtype} {list(vectors.shape)}" if isinstance(vectors, torch.Tensor) else type(vectors).__name__
        raise PrunerError(f"{where}: returned {got}; expected a float32 tensor [k, {width}]")
    if vectors.shape[1] != width:
        raise PrunerError(f"{where}: returned vectors of width {vectors.shape[1]}; expected {width}")
    norms = np.sqrt(squares(vectors.detach().numpy()))
    if not np.isfinite(norms).all() and len(bad := (~torch.isfinite(vectors).all(1)).nonzero()):
        raise PrunerError(f"{where}: {len(bad)} of {len(vectors)} vectors are not finite, the first is {int(bad[0])}")
    if unit_norm and len(vectors):
        worst = np.abs(norms - 1).argmax()
        if abs(norms[worst] - 1) > UNIT_NORM_TOLERANCE:
            raise PrunerError(
                f"{where}: vector {worst} has norm {norms[worst]:.4g}; expected 1, as the method promises"
            )


@numba.njit(cache=True)
def _close(a: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    apart = 0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            apart += not abs(a[i, j] - b[i, j]) <= tolerance  # counts NaN too
    return apart == 0
