"""The one way a pruner is run: `prune` checks what it needs, guards the page, and checks what comes back.

Nothing is repaired. An error names the pruner, the page, what was returned and what was expected.
"""

from __future__ import annotations

import traceback
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import torch

from pruners.kernels.groups import faults
from pruners.kernels.rows import squares

from .budget import keep_count
from .context import PruneContext
from .contract import Merged, Pruner, Subset
from .errors import PruneBoardError, PrunerError
from .groups import Groups
from .page import Page
from .seed import SEED

if TYPE_CHECKING:
    from .single_page import Pruned

UNIT_NORM_TOLERANCE = 1e-3  # vectors may have come from a float16 store


@overload
def prune(
    pruner: Pruner,
    page: Page,
    budgets: Sequence[float],
    *,
    seed: int = ...,
    trial: int = ...,
    queries: Sequence[torch.Tensor] | None = ...,
) -> Subset | Merged: ...


@overload
def prune(
    pruner: Pruner | type[Pruner] | str,
    page: Page | torch.Tensor | np.ndarray,
    *,
    budget: float,
    seed: int = ...,
    trial: int = ...,
    queries: Sequence[torch.Tensor] | None = ...,
) -> Pruned: ...


def prune(
    pruner: Any,
    page: Any,
    budgets: Sequence[float] | None = None,
    *,
    budget: float | None = None,
    seed: int = SEED,
    trial: int = 0,
    queries: Sequence[torch.Tensor] | None = None,
) -> Subset | Merged | Pruned:
    """Run `pruner` on `page` at all `budgets`. Gold `queries` are given to diagnostics, and to nothing else.

    With one `budget=0.1` in their place, what is left comes back as vectors and indices (see `Pruned`); `pruner` may
    then be a class or a text form, and `page` plain vectors `[N, d]`: a tensor or a numpy array of any floating type.
    """
    if budgets is None or budget is not None:
        from .single_page import prune_one

        if budgets is not None or budget is None:
            raise PrunerError("prune() takes budget=0.1, or budgets=[0.05, 0.1]: one of the two")
        return prune_one(pruner, page, budget, seed=seed, trial=trial, queries=queries)
    require(pruner, page.available, f"page {page.id!r}")
    if pruner.declaration.diagnostic != (queries is not None):
        way = "give it the page's gold queries" if queries is None else "only a diagnostic may see queries"
        raise PrunerError(f"pruner {str(pruner)!r}, page {page.id!r}: {way}")
    where = f"pruner {str(pruner)!r}, page {page.id!r}"
    context = PruneContext(page.id, seed, trial, tuple(queries) if queries is not None else None)
    before = page.original
    try:
        result = pruner.prune(page.offering(pruner.needs), budgets, context)
    except PrunerError:
        raise
    except PruneBoardError as error:
        raise PrunerError(f"{where}: {error}") from error
    except (Exception, SystemExit) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        hint = "" if "grid" in pruner.needs else "; if it uses page.grid, it must declare needs=('grid',)"
        raise PrunerError(
            f"{where}: failed with {type(error).__name__}: {error} ({last.filename}:{last.lineno})"
            + (hint if isinstance(error, (TypeError, AttributeError)) else "")
        ) from error
    if page.fingerprint() != before:
        raise PrunerError(f"{where}: it wrote into the page; work on a copy (`page.vectors.clone()`)")
    return checked(pruner, page, budgets, result)


def calibrate(pruner: Pruner, pages: Sequence[Page], budgets: Sequence[float]) -> Pruner:
    """`pruner` after it learned from pages, of which it sees what it declared."""
    return pruner.calibrate([page.offering(pruner.needs) for page in pages], budgets)


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
        for budget, part in zip(budgets, result.parts, strict=False):
            _check_part(f"{where}, budget {budget:g}", page, part, pruner.unit_norm)
        counts = [len(part) for part in result.parts]
    else:
        raise PrunerError(f"{where}: returned {type(result).__name__}; expected Subset or Merged")
    if len(counts) != len(budgets):
        raise PrunerError(f"{where}: returned results for {len(counts)} budgets; expected {len(budgets)}")
    n, kind = len(page), pruner.budget_kind
    for budget, count in zip(budgets, counts, strict=True):
        k = keep_count(budget, n)
        least, most = k if kind == "fixed" else 1, n if kind == "adaptive" else k
        if not least <= count <= most:
            expected = f"{k}" if least == most else f"{least} to {most}"
            raise PrunerError(f"{where}, budget {budget:g}: returned {count} vectors; expected {expected} of {n}")
    return result


def _check_order(where: str, page: Page, result: Subset) -> None:
    order = result.order
    if not isinstance(order, np.ndarray) or order.ndim != 1 or order.dtype.kind not in "iu":
        raise PrunerError(f"{where}: the order must be a one-dimensional integer array, not {type(order).__name__}")
    if len(order) < max(result.counts, default=0):
        raise PrunerError(f"{where}: the order has {len(order)} patches; expected at least {max(result.counts)}")
    outside = order[(order < 0) | (order >= len(page))]
    if len(outside):
        raise PrunerError(f"{where}: returned patch {outside[0]}; expected patches from 0 to {len(page) - 1}")
    times = np.bincount(order.astype(np.int64), minlength=1)
    if times.max() > 1:
        raise PrunerError(f"{where}: returned patch {times.argmax()} {times.max()} times; expected once")


def _check_part(where: str, page: Page, part: object, unit_norm: bool) -> None:
    norms = _group_norms(where, page, part) if isinstance(part, Groups) else _vector_norms(where, page, part)
    if not len(norms):
        return
    bad = np.flatnonzero(~np.isfinite(norms))
    if len(bad):
        raise PrunerError(f"{where}: {len(bad)} of {len(norms)} vectors are not finite, the first is {bad[0]}")
    worst = np.abs(norms - 1).argmax()
    if unit_norm and abs(norms[worst] - 1) > UNIT_NORM_TOLERANCE:
        raise PrunerError(f"{where}: vector {worst} has norm {norms[worst]:.4g}; expected 1, as the method promises")


def _vector_norms(where: str, page: Page, vectors: object) -> np.ndarray:
    width = page.vectors.shape[1]
    if not isinstance(vectors, torch.Tensor) or vectors.dtype != torch.float32 or vectors.ndim != 2:
        got = f"{vectors.dtype} {list(vectors.shape)}" if isinstance(vectors, torch.Tensor) else type(vectors).__name__
        raise PrunerError(f"{where}: returned {got}; expected a float32 tensor [k, {width}]")
    if vectors.shape[1] != width:
        raise PrunerError(f"{where}: returned vectors of width {vectors.shape[1]}; expected {width}")
    return np.sqrt(squares(vectors.detach().numpy()))


def _group_norms(where: str, page: Page, groups: Groups) -> np.ndarray:
    """Compiled loops follow the labels, so these must be right before any of them runs."""
    if groups.patches is not page.vectors:
        raise PrunerError(f"{where}: its groups are not of this page's vectors")
    labels, scales = groups.labels, groups.scales
    whole = (
        labels.dtype == np.int64 and labels.shape == (len(page),) and scales.ndim == 1 and scales.dtype == np.float32
    )
    outside, empty = faults(labels, len(scales)) if whole else (0, -1)
    if outside >= 0:
        raise PrunerError(f"{where}: its groups do not label {len(page)} patches with 0 to {len(scales) - 1} or -1")
    if empty >= 0:
        raise PrunerError(f"{where}: group {empty} of {len(scales)} has no patch")
    return groups.norms()
