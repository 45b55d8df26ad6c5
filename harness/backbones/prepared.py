"""A batch of pages as a model takes it, made of pages that were prepared one by one."""

from __future__ import annotations

import harness.compat  # noqa: F401

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pruners.core.errors import PruneBoardError

Empty = Callable[[tuple[int, ...], torch.dtype], torch.Tensor]
"""Gives a tensor of a shape and type whose numbers will be written."""


@dataclass(frozen=True)
class Prepared:
    """Pages as a model takes them, and the grid and ink of each."""

    inputs: Any
    places: tuple[tuple[tuple[int, int] | None, torch.Tensor], ...]

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensor in self.inputs.values())


def new_memory(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype)


def side_by_side(pages: Sequence[Prepared], tokenizer: Any, empty: Empty = new_memory) -> Prepared:
    """Pages in one batch, filled up as their processor would have filled them up together, to the last bit."""
    from transformers import BatchFeature  # a backbone's card is known without it

    columns = {name: [page.inputs[name] for page in pages] for name, _ in pages[0].inputs.items()}
    inputs = {name: _filled_up(name, rows, tokenizer, empty) for name, rows in columns.items()}
    return Prepared(BatchFeature(inputs), tuple(place for page in pages for place in page.places))


def _filled_up(name: str, rows: Sequence[torch.Tensor], tokenizer: Any, empty: Empty) -> torch.Tensor:
    """Rows under each other. Tokens are filled up on the tokenizer's side, pixels (more than two axes) at the end."""
    shapes = {tuple(row.shape[1:]) for row in rows}
    if len({shape[1:] for shape in shapes}) > 1:
        raise PruneBoardError(f"pages cannot be put side by side: their {name} have the shapes {sorted(shapes)}")
    longest = max(shapes)
    filled = empty((sum(map(len, rows)), *longest), rows[0].dtype)
    if len(shapes) > 1:
        filled.fill_(tokenizer.pad_token_id if name == "input_ids" else 0)
    at = 0
    for row in rows:
        place = filled[at : (at := at + len(row))]
        if len(shapes) > 1:
            left = longest[0] - row.shape[1] if row.ndim == 2 and tokenizer.padding_side == "left" else 0
            place = place[:, left : left + row.shape[1]]
        place.copy_(row)
    return filled
