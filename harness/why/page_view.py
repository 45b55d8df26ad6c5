"""What is drawn of one page: its canvas, the methods at their budgets, a query's hits, and signals layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from harness.why.canvas import Canvas
from harness.why.hits import Hits, hits_of
from harness.why.kept import MADE, MERGED, Kept
from harness.why.tokens import Token
from pruners import Window


@dataclass(frozen=True)
class Query:
    """A query with its vectors `[T, d]` and a token for each."""

    id: str
    text: str
    vectors: torch.Tensor
    tokens: Sequence[Token]


@dataclass(frozen=True)
class Cell:
    """One method at one budget."""

    method: str
    budget: float
    kept: Kept
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
    canvas: Canvas
    rows: Sequence[Sequence[Cell]]
    query: Query | None = None
    layers: Layers | None = None
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def cells(self) -> list[Cell]:
        return [cell for row in self.rows for cell in row]


def cell_of(
    method: str,
    budget: float,
    kept: Kept,
    vectors: torch.Tensor,
    query: Query | None,
    prompt: torch.Tensor | None = None,
) -> Cell:
    hits = hits_of(query.vectors, vectors, kept, prompt) if query else None
    return Cell(method, budget, kept, hits)
