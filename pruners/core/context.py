"""What a method may be given beside a page."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch


@dataclass(frozen=True)
class PruneContext:
    """It asks by naming an argument: `rng`, or (diagnostics) `queries`."""

    page_id: str
    seed: int
    trial: int
    queries: tuple[torch.Tensor, ...] | None = None

    def rng(self) -> np.random.Generator:
        """A fresh generator that depends on (seed, trial, page id) alone: not on order, sharding or other budgets."""
        digest = hashlib.sha256(self.page_id.encode()).digest()
        return np.random.default_rng([self.seed, self.trial, int.from_bytes(digest[:16], "little")])

    def arguments(self, uses: frozenset[str]) -> dict[str, Any]:
        rng = {"rng": self.rng()} if "rng" in uses else {}
        return {**rng, "queries": self.queries} if "queries" in uses else rng
