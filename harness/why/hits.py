"""Which vector each query token matches best (MaxSim), on the whole page and on what a method left of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from harness.why.kept_vectors import KeptVectors

NOWHERE = -1
"""The place of a prompt token's vector, which profile `native` indexes beside the page's: it lies on no patch."""


@dataclass(frozen=True)
class Hits:
    """One entry a query token: the patch of its best match and the similarity, before pruning and after."""

    before: np.ndarray
    after: np.ndarray
    similarity_before: np.ndarray
    similarity_after: np.ndarray

    @property
    def lost(self) -> np.ndarray:
        """Similarity that pruning took from each token."""
        return self.similarity_before - self.similarity_after

    @property
    def score_before(self) -> float:
        return float(self.similarity_before.sum())

    @property
    def score_after(self) -> float:
        return float(self.similarity_after.sum())


def hits_of(query: torch.Tensor, vectors: torch.Tensor, kept: KeptVectors, prompt: torch.Tensor | None = None) -> Hits:
    """Hits of `query [T, d]` on a page's `vectors [N, d]`, and on what is kept; `prompt [P, d]` is indexed beside both.

    A hit on a merged vector is shown at that patch of its group which the token matches best.
    """
    extra = vectors[:0] if prompt is None else prompt
    patches = (query @ torch.cat([vectors, extra]).T).numpy()
    left = (query @ torch.cat([kept.vectors, extra]).T).numpy()
    full, chosen = patches.argmax(1), left.argmax(1)
    tokens = range(len(query))
    return Hits(
        before=np.where(full < len(vectors), full, NOWHERE),
        after=np.array([_place(kept, int(chosen[t]), patches[t]) for t in tokens]),
        similarity_before=patches[tokens, full],
        similarity_after=left[tokens, chosen],
    )


def _place(kept: KeptVectors, vector: int, similarity: np.ndarray) -> int:
    members = kept.patches(vector)
    if vector >= len(kept) or not len(members):  # of the prompt, or made of patches that nearer vectors took
        return NOWHERE
    return int(members[similarity[members].argmax()])
