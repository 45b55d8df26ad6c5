"""Token Merging by bipartite soft matching. Reference: Bolya et al. 2023, "Token Merging: Your ViT But Faster"
(arXiv 2210.09461), applied to the output vectors instead of inside the encoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numba
import numpy as np
import torch

from pruners import Page, PruneBoardError, Reducer, reducer, unit


@reducer("tome", paper="Bolya et al. 2023, Token Merging, arXiv 2210.09461")
@dataclass(frozen=True)
class ToMe(Reducer):
    """Alternate vectors form two sets; the most similar pairs across them merge, size-weighted, round after round."""

    rate: float = 0.1  # of the vectors merged in a round; the original merges 4-8 % in each of a ViT's layers
    renormalize: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 0.5:
            raise PruneBoardError(f"rate is the part merged in a round, above 0 and at most 0.5, not {self.rate}")

    def reduce(self, page: Page) -> Callable[[int], torch.Tensor]:
        """Full rounds are shared by all budgets; only the last, shortened one belongs to a budget alone.

        So what a budget gets does not depend on which others were asked for.
        """
        rounds = [(np.ascontiguousarray(page.vectors.numpy()), np.ones(len(page), np.float32))]

        def at(k: int) -> torch.Tensor:
            while len(rounds[-1][0]) > k:
                rounds.append(_merge(*rounds[-1], self._step(len(rounds[-1][0]))))
            sums, sizes = next(state for state in reversed(rounds) if len(state[0]) >= k)
            if len(sums) > k:
                sums, sizes = _merge(sums, sizes, len(sums) - k)
            groups = torch.from_numpy(sums)
            return unit(groups) if self.renormalize else groups / torch.from_numpy(sizes)[:, None]

        return at

    def _step(self, n: int) -> int:
        return max(1, int(self.rate * n))


@numba.njit(cache=True)
def _merge(sums: np.ndarray, sizes: np.ndarray, r: int) -> tuple[np.ndarray, np.ndarray]:
    """One round: each even vector proposes to its most similar odd one; the r best pairs merge. Reading order stays.

    Groups are kept as sums and sizes, which makes the size-weighted mean of any merge a plain addition. Compiled,
    because a page takes dozens of rounds of a dozen small steps each.
    """
    n = len(sums)
    directions = np.empty_like(sums)
    for i in range(n):
        directions[i] = sums[i] / max(np.sqrt((sums[i] * sums[i]).sum()), np.float32(1e-12))
    even, odd = np.ascontiguousarray(directions[0::2]), np.ascontiguousarray(directions[1::2])
    similarity = np.dot(even, odd.T)
    best, partner = np.empty(len(even), np.float32), np.empty(len(even), np.int64)
    for i in range(len(even)):
        partner[i] = similarity[i].argmax()
        best[i] = similarity[i, partner[i]]
    chosen = np.argsort(-best, kind="mergesort")[:r]
    sums, sizes, stays = sums.copy(), sizes.copy(), np.ones(n, np.bool_)
    for i in chosen:
        leaving, joined = 2 * i, 2 * partner[i] + 1
        sums[joined] += sums[leaving]
        sizes[joined] += sizes[leaving]
        stays[leaving] = False
    kept = np.flatnonzero(stays)
    return sums[kept], sizes[kept]
