"""What a backbone makes of a page, and a store keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class EncodedPage:
    """One page, encoded: `vectors [N, d]` of its tokens (the card says of which kind), and what came with them."""

    vectors: torch.Tensor
    grid: tuple[int, int] | None = None
    signals: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """By name, float32 `[layers, N]` (one row for signals that have no layers)."""
    prompt: torch.Tensor | None = None
    """Vectors `[P, d]` of the prompt and special tokens, which the stock retriever indexes too (profile `native`)."""
