"""The contract of a pruner: two shapes an author writes (scorer, reducer), one interface the harness calls (`prune`).

A pruner is a frozen dataclass: its fields are the method's hyper-parameters, and `learned()` fields hold what
`calibrate` found. `decorators.py` has those that turn an author's function or class into one of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch

from .budget import keep_count
from .context import PruneContext
from .errors import PrunerError
from .groups import Groups, group
from .page import Page
from .text_form import TextForm
from .window import Window

DEFAULT_TRIALS = 5  # of a method that asks for `rng`


@dataclass(frozen=True)
class Declaration:
    """What a method says of itself in its decorator."""

    name: str
    output: str = "subset"  # or merged, quantised
    budget: str = "fixed"  # or adaptive, snapped
    needs: tuple[str, ...] = ()
    paper: str = ""
    ordinal: bool = False  # its scores are ranks, without a scale that a threshold could be put on
    trials: int | None = None  # None: DEFAULT_TRIALS if it asks for `rng`, else 1
    diagnostic: bool = False


@dataclass(frozen=True)
class Subset:
    """Kept patches for each budget, as prefixes of one order: budget i keeps `order[:counts[i]]`."""

    order: np.ndarray
    counts: tuple[int, ...]

    def kept(self, i: int) -> np.ndarray:
        return self.order[: self.counts[i]]


@dataclass(frozen=True)
class Merged:
    """New vectors for each budget, and the bits one of them takes in an index (None: the index's own type).

    A part is the vectors themselves `[k, d]`, or the groups of patches whose means they are, which are scored faster.
    """

    parts: tuple[torch.Tensor | Groups, ...]
    bits_per_vector: int | None = None

    @property
    def vectors(self) -> tuple[torch.Tensor, ...]:
        return tuple(part.vectors if isinstance(part, Groups) else part for part in self.parts)


class Pruner(TextForm):
    """A method with its hyper-parameters."""

    declaration: ClassVar[Declaration]
    uses: ClassVar[frozenset[str]] = frozenset()

    def parts(self) -> list[Pruner]:
        """The pruners this one is composed of."""
        return [value for value in self.fields().values() if isinstance(value, Pruner)]

    @property
    def made(self) -> Pruner:
        """What really runs: of a preset its composition, of any other method itself."""
        return self

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """The signals (or `grid`) this instance reads. A composition needs what its parts do, and nothing else."""
        if parts := self.parts():
            return tuple(dict.fromkeys(need for part in parts for need in part.needs))
        return self.declaration.needs

    @property
    def budget_kind(self) -> str:
        """fixed, adaptive or snapped: what the number of vectors it returns may be."""
        return self.declaration.budget

    @property
    def trials(self) -> int:
        """How many seeds an evaluation averages over, unless told otherwise."""
        own = self.declaration.trials or (DEFAULT_TRIALS if "rng" in self.uses else 1)
        return max([own, *(part.trials for part in self.parts())])

    @property
    def unit_norm(self) -> bool:
        """Whether merged vectors are promised to have norm 1: what the field `renormalize` says, if there is one."""
        return bool(getattr(self, "renormalize", False))

    @property
    def shared_bytes(self) -> int:
        """Bytes an index must hold once for all pages (a codebook, say)."""
        return 0

    @property
    def needs_calibration(self) -> bool:
        """Whether it learns from pages: it, or a part of it, has a `learned()` field."""
        return self.learns or any(part.needs_calibration for part in self.parts())

    @property
    def open_window(self) -> bool:
        """Whether it waits for the backbone's window: it, or a part of it, has a field `layers` that is None."""
        return getattr(self, "layers", self) is None or any(part.open_window for part in self.parts())

    def with_window(self, window: Window) -> Self:
        """Itself with `window` wherever it, or a part of it, has left its own open."""
        changes: dict[str, Any] = {n: v.with_window(window) for n, v in self.fields().items() if isinstance(v, Pruner)}
        if getattr(self, "layers", self) is None:
            changes["layers"] = window
        return self.replace(**changes) if changes else self

    @property
    def own_threshold(self) -> bool:
        """Whether its threshold is given and not calibrated: it keeps what exceeds that, whatever the budget."""
        return any(part.own_threshold for part in self.parts())

    @property
    def partner(self) -> Pruner | None:
        """With a threshold given: the method of a fixed ratio to compare it with, as a rule the scorer inside."""
        return next((part.partner for part in self.parts() if part.partner is not None), None)

    @property
    def learned_thresholds(self) -> Mapping[float, float]:
        """The thresholds that it, or a part of it, learned, by budget: a run records them."""
        return next((part.learned_thresholds for part in self.parts() if part.learned_thresholds), {})

    def calibrate(self, pages: Sequence[Page], budgets: Sequence[float]) -> Self:
        """A new instance that has learned what it needs from `pages`, for all `budgets`. By default its parts do."""
        trained = {n: v.calibrate(pages, budgets) for n, v in self.fields().items() if isinstance(v, Pruner)}
        return self.replace(**trained) if trained else self

    def prune(self, page: Page, budgets: Sequence[float], context: PruneContext) -> Subset | Merged:
        """Prune a page at all budgets. Called through `apply.prune`, which guards the page and checks the result."""
        raise NotImplementedError(f"{type(self).__name__} must say how it prunes")


class Scorer(Pruner):
    """Gives each patch a number; the harness keeps the highest."""

    score: Callable[..., torch.Tensor]

    def ranked(self, page: Page, context: PruneContext) -> tuple[torch.Tensor, np.ndarray]:
        """Scores, and the order they induce."""
        scores = self._one_a_patch(page, self.score(page, **context.arguments(self.uses)))
        order = rank(scores)
        values = scores.numpy()
        # infinite scores and NaN are ranked first or last, so that all are finite if these two are
        if not (math.isfinite(values[order[0]]) and math.isfinite(values[order[-1]])):
            bad = (~torch.isfinite(scores)).nonzero()
            first = int(bad[0])
            raise PrunerError(
                f"pruner {str(self)!r}, page {page.id!r}: {len(bad)} of {len(page)} scores are not finite, "
                f"the first is {scores[first].item()} at patch {first}"
            )
        return scores, order

    def _one_a_patch(self, page: Page, scores: Any) -> torch.Tensor:
        """What `score` returned, if it is one number a patch."""
        if isinstance(scores, np.ndarray):
            scores = torch.from_numpy(np.ascontiguousarray(scores))
        if not isinstance(scores, torch.Tensor) or scores.shape != (len(page),):
            got = f"a tensor {list(scores.shape)}" if isinstance(scores, torch.Tensor) else type(scores).__name__
            raise PrunerError(
                f"pruner {str(self)!r}, page {page.id!r}: score() returned {got}; "
                f"expected one number a patch, a tensor [{len(page)}]"
            )
        scores = scores.detach()
        return scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores

    def prune(self, page: Page, budgets: Sequence[float], context: PruneContext) -> Subset:
        _, order = self.ranked(page, context)
        n = len(page)
        return Subset(order, tuple(keep_count(budget, n) for budget in budgets))


class Reducer(Pruner):
    """Merges a page into k vectors: `reduce(page, k)`. If all k share work, `reduce(page)` returns a function of k.

    It returns the vectors `[k, d]`, or, where these are means of patches, the group of each patch `[N]`: whole numbers
    from 0 to k - 1, or -1 for a patch in none. Means are then made here, of norm 1 if `renormalize` says so.
    """

    reduce: Callable[..., Any]

    def count(self, page: Page, budget: float) -> int:
        """How many vectors this method makes at a budget. Methods bound to the patch grid snap it."""
        return keep_count(budget, len(page))

    def prune(self, page: Page, budgets: Sequence[float], context: PruneContext) -> Merged:
        counts = [self.count(page, budget) for budget in budgets]
        at: Callable[[int], torch.Tensor | np.ndarray]
        if "k" in self.uses:
            at = lambda k: self.reduce(page, k, **context.arguments(self.uses))  # noqa: E731
        elif any(k < len(page) for k in counts):
            at = self.reduce(page, **context.arguments(self.uses))
        return Merged(tuple(self._whole(page) if k == len(page) else self._part(page, k, at(k)) for k in counts))

    def _whole(self, page: Page) -> torch.Tensor:
        """k = N merges nothing, whatever the method."""
        return unit(page.vectors) if self.unit_norm else page.vectors

    def _part(self, page: Page, k: int, made: torch.Tensor | np.ndarray) -> torch.Tensor | Groups:
        if isinstance(made, torch.Tensor) and made.is_floating_point():
            return made
        return group(page.vectors, made, k, self.unit_norm)


class Diagnostic(Scorer):
    """A scorer that sees the page's gold queries: an upper bound to read others against, never ranked with them."""


class Preset(Pruner):
    """A named composition. Its fields are the arguments of the function that builds it."""

    build: Callable[..., Pruner]
    inner: Pruner | None  # the calibrated composition

    @cached_property
    def made(self) -> Pruner:
        return self.inner or self.build()

    def parts(self) -> list[Pruner]:
        return [self.made]

    @property
    def unit_norm(self) -> bool:
        return self.made.unit_norm

    @property
    def shared_bytes(self) -> int:
        return self.made.shared_bytes

    @property
    def needs_calibration(self) -> bool:
        return self.made.needs_calibration

    def calibrate(self, pages: Sequence[Page], budgets: Sequence[float]) -> Self:
        return self.replace(inner=self.made.calibrate(pages, budgets))

    def prune(self, page: Page, budgets: Sequence[float], context: PruneContext) -> Subset | Merged:
        return self.made.prune(page, budgets, context)


def rank(scores: torch.Tensor) -> np.ndarray:
    """Patches by score, along the last axis: highest first, equal scores by patch index."""
    return np.argsort(-scores.double().numpy(), axis=-1, kind="stable")


def unit(vectors: torch.Tensor) -> torch.Tensor:
    """Rows scaled to norm 1. A zero row has no direction and stays zero; the check on unit norm then names it."""
    return torch.nn.functional.normalize(vectors, dim=-1)
