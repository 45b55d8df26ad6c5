"""What a method left of a page: which patches it kept, or which it merged into which vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from pruners import Merged, Page, Pruner, Subset, prune
from pruners.core.contract import Diagnostic
from pruners.core.groups import Groups

SUBSET, MERGED, MADE = "subset", "merged", "made"
"""Patches kept as they are; means of patches; vectors made in another way, each shown at the patch nearest to it."""


@dataclass(frozen=True)
class KeptVectors:
    """`vectors [k, d]`, and of each patch the vector it is in: `labels [N]`, -1 for one that is gone."""

    vectors: torch.Tensor
    labels: np.ndarray
    kind: str

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def sizes(self) -> np.ndarray:
        """Patches behind each vector."""
        return np.bincount(self.labels[self.labels >= 0], minlength=len(self))

    def patches(self, vector: int) -> np.ndarray:
        return np.flatnonzero(self.labels == vector)


def kept_at(
    pruner: Pruner,
    page: Page,
    budgets: Sequence[float],
    *,
    seed: int,
    trial: int = 0,
    gold: Sequence[torch.Tensor] = (),
) -> list[KeptVectors]:
    """What a method leaves of a page at each budget. `gold` are the page's queries, which only a diagnostic sees."""
    queries = list(gold) if isinstance(pruner, Diagnostic) else None
    result = prune(pruner, page, budgets, seed=seed, trial=trial, queries=queries)
    return [kept_of(page, result, i) for i in range(len(budgets))]


def kept_of(page: Page, result: Subset | Merged, i: int) -> KeptVectors:
    """Of a result at its budget i."""
    labels = np.full(len(page), -1)
    if isinstance(result, Subset):
        kept = result.kept(i)
        labels[kept] = np.arange(len(kept))
        return KeptVectors(page.vectors[torch.from_numpy(kept.astype(np.int64))], labels, SUBSET)
    part = result.parts[i]
    if isinstance(part, Groups):
        return KeptVectors(part.vectors, part.labels, MERGED)
    nearest = (part @ page.vectors.T).argmax(dim=1).numpy()
    labels[nearest[::-1]] = np.arange(len(part))[::-1]  # where two share a patch, it shows the first
    return KeptVectors(part, labels, MADE)
