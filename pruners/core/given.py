"""What a method may be given beside a page."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .errors import PrunerError


@dataclass(frozen=True)
class Given:
    """It asks by naming an argument: `rng`, or (diagnostics) `queries`."""

    page_id: str
    seed: int
    trial: int
    queries: tuple[torch.Tensor, ...] | None = None

    def rng(self) -> np.random.Generator:
        """A fresh generator that depends on (seed, trial, page id) alone: not on order, sharding or other budgets."""
        digest = hashlib.sha256(self.page_id.encode()).digest()
        words = [*_words(self.seed), *_words(self.trial), *_words(int.from_bytes(digest[:16], "little"))]
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(np.array(words, np.uint32))))

    def arguments(self, uses: frozenset[str]) -> dict[str, Any]:
        wanted: dict[str, Any] = {}
        if "rng" in uses:
            wanted["rng"] = self.rng()
        if "queries" in uses:
            wanted["queries"] = self.queries
        return wanted


def _words(number: int) -> list[int]:
    """A number in words of 32 bits, the lowest first: what numpy makes of it as a seed, at several times the cost."""
    if number < 0:
        raise PrunerError(f"a seed is 0 or more, not {number}")
    words = [number & 0xFFFFFFFF]
    while number := number >> 32:
        words.append(number & 0xFFFFFFFF)
    return words
