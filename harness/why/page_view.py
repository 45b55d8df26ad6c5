"""What is drawn of one page: its canvas, the methods at their budgets, a query's hits, and signals layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from harness.why.canvas import PageCanvas
from harness.why.hits import Hits, hits_of
from harness.why.kept_vectors import MADE, MERGED, KeptVectors
from harness.why.tokens import Token
from pruners import Window


@dataclass(frozen=True)
class DrawnQuery:
    """A query with its vectors `[T, d]` and a token for each."""

    id: str
    text: str
    vectors: torch.Tensor
    tokens: Sequence[Token]


@dataclass(frozen=True)
class DrawnCell:
    """One method at one budget."""

    method: str
    budget: float
    kept: KeptVectors
    hits: Hits | None = None

    @property
    def told(self) -> str:
        """What it did, in a few words."""
        share = f"{len(self.kept)} of {len(self.kept.labels)}"
        if self.kept.kind == MERGED:
            return f"{share} vectors, merged; the largest of {int(self.kept.sizes.max())} patches"
        if self.kept.kind == MADE:
            return f"{share} vectors of its own, each at the nearest patch"
        return f"{share} kept"


@dataclass(frozen=True)
class Layers:
    """Signals `[L, N]` by name, and the window that a method reads, if one is bound."""

    signals: Mapping[str, torch.Tensor]
    window: Window | None


@dataclass(frozen=True)
class PageView:
    """`rows` are methods, each with a cell a budget."""

    page_id: str
    data_set: str
    canvas: PageCanvas
    rows: Sequence[Sequence[DrawnCell]]
    query: DrawnQuery | None = None
    layers: Layers | None = None
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def cells(self) -> list[DrawnCell]:
        return [cell for row in self.rows for cell in row]


def cell_of(
    method: str,
    budget: float,
    kept: KeptVectors,
    vectors: torch.Tensor,
    query: DrawnQuery | None,
    prompt: torch.Tensor | None = None,
) -> DrawnCell:
    hits = hits_of(query.vectors, vectors, kept, prompt) if query else None
    return DrawnCell(method, budget, kept, hits)
