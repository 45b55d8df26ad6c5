"""Proving a pruner on made-up pages: shapes that break careless code, before any real data is spent on it.

`check_contract` is what `harness check` runs and what the test of a new pruner calls.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from .apply import calibrate, prune
from .contract import Merged, Pruner, Subset, unit
from .errors import PrunerError
from .page import SIGNALS, Page

BUDGETS = (1e-6, 0.05, 0.10, 0.20, 1.0)
"""The standard budgets, one so small that a single vector is left, and the whole page."""

LAYERS = 4
ONE_ROW = ("ink", "token", "stopword")  # signals that are no attention


def synthetic_page(
    rows: int, cols: int, *, dim: int = 32, layers: int = LAYERS, signals: Collection[str] = SIGNALS, seed: int = 0
) -> Page:
    """A page with about one cluster of vectors for every twelve patches, skewed signals, and a third of it blank."""
    n = rows * cols
    rng = np.random.default_rng([seed, rows, cols])
    centres = rng.standard_normal((max(1, n // 12), dim))
    vectors = centres[rng.integers(len(centres), size=n)] + 0.7 * rng.standard_normal((n, dim))
    made = {name: rng.exponential(size=(1 if name in ONE_ROW else layers, n)) for name in signals}
    if "ink" in made:
        made["ink"][:, rng.random(n) < 1 / 3] = 0
    return Page(
        f"synthetic-{rows}x{cols}-{seed}",
        unit(torch.from_numpy(vectors).float()),
        (rows, cols),
        {name: torch.from_numpy(values).float() for name, values in made.items()},
    )


def hard_pages(needs: Sequence[str]) -> dict[str, Page]:
    """Named pages that a method must get through, with the signals that it declares."""
    signals = [need for need in needs if need != "grid"]
    usual = synthetic_page(16, 12, signals=signals)
    same = Page("all-equal", usual.vectors[:1].repeat(60, 1), (6, 10), {s: torch.ones(LAYERS, 60) for s in signals})
    doubled = Page(
        "duplicates",
        usual.vectors.repeat(2, 1),
        (32, 12),
        {name: values.repeat(1, 2) for name, values in usual.signals.items()},
    )
    return {
        "usual": usual,
        "one patch": synthetic_page(1, 1, signals=signals),
        "two patches": synthetic_page(1, 2, signals=signals),
        "one long row": synthetic_page(1, 97, signals=signals),
        "all equal": same,
        "duplicates": doubled,
        "dense": synthetic_page(32, 32, signals=signals),
    }


@dataclass(frozen=True)
class Proof:
    """How many vectors a method kept of one hard page, for each of `BUDGETS`."""

    page: str
    n: int
    counts: tuple[int, ...]


def check_contract(pruner: Pruner, own_signals: Collection[str] = ()) -> list[Proof]:
    """Run `pruner` on every hard page. Raises `PrunerError` at the first broken promise, else says what it kept.

    `own_signals` are those that a backbone of one's own gives, beside the usual ones. Beyond `apply.checked`: the same
    input gives the same output, a budget's result does not depend on which other budgets were asked for, and γ = 1 of a
    subset method is the page itself.
    """
    _require_known(pruner, {*SIGNALS, "grid", *own_signals})
    pages = hard_pages(pruner.needs)
    usual = pages["usual"]
    pruner = calibrate(pruner, [usual, pages["dense"]], BUDGETS)
    proofs = []
    for kind, page in pages.items():
        queries = [usual.vectors[:5]] if pruner.declaration.diagnostic else None
        together = prune(pruner, page, BUDGETS, queries=queries)
        where = f"pruner {str(pruner)!r}, page {page.id!r}"
        for i, budget in enumerate(BUDGETS):
            alone = prune(pruner, page, [budget], queries=queries)
            if not torch.equal(_index(page, together, i), _index(page, alone, 0)):
                raise PrunerError(
                    f"{where}, budget {budget:g}: the result differs from call to call, or with the other budgets "
                    "asked for; draw random numbers from `rng` only, and keep no state"
                )
        if isinstance(together, Subset) and together.counts[-1] != len(page):
            raise PrunerError(f"{where}: kept {together.counts[-1]} of {len(page)} vectors at budget 1; expected all")
        proofs.append(Proof(kind, len(page), tuple(len(_index(page, together, i)) for i in range(len(BUDGETS)))))
    return proofs


def _require_known(pruner: Pruner, known: Collection[str]) -> None:
    """A misspelt signal would only be noticed when a backbone does not have it."""
    for need in pruner.needs:
        if need not in known:
            near = difflib.get_close_matches(need, known, n=1)
            hint = f"Did you mean {near[0]!r}? " if near else ""
            raise PrunerError(
                f"pruner {str(pruner)!r} needs {need!r}, which no backbone here gives. {hint}There are "
                f"{', '.join(sorted(known))}; name one that a backbone of your own gives with --signal {need}"
            )


def _index(page: Page, result: Subset | Merged, i: int) -> torch.Tensor:
    """The vectors that budget i leaves in an index."""
    return page.vectors[result.kept(i)] if isinstance(result, Subset) else result.vectors[i]
