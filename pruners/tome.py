"""Token Merging by bipartite soft matching. Reference: Bolya et al. 2023, "Token Merging: Your ViT But Faster"
(arXiv 2210.09461), applied to the output vectors instead of inside the encoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numba
import numpy as np

from pruners import Page, PruneBoardError, Reducer, reducer


@reducer("tome", paper="Bolya et al. 2023, Token Merging, arXiv 2210.09461")
@dataclass(frozen=True)
class ToMe(Reducer):
    """Alternate vectors form two sets; the most similar pairs across them merge, size-weighted, round after round."""

    rate: float = 0.1  # of the vectors merged in a round; the original merges 4-8 % in each of a ViT's layers
    renormalize: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 0.5:
            raise PruneBoardError(f"rate is the part merged in a round, above 0 and at most 0.5, not {self.rate}")

    def reduce(self, page: Page) -> Callable[[int], np.ndarray]:
        """Full rounds are shared by all budgets; only the last, shortened one belongs to a budget alone.

        So what a budget gets does not depend on which others were asked for.
        """
        rounds = [(np.array(page.vectors.numpy(), order="C"), np.arange(len(page)))]

        def at(k: int) -> np.ndarray:
            while len(rounds[-1][0]) > k:
                rounds.append(_merge(*rounds[-1], self._step(len(rounds[-1][0]))))
            sums, labels = next(state for state in reversed(rounds) if len(state[0]) >= k)
            return labels if len(sums) == k else _merge(sums, labels, len(sums) - k)[1]

        return at

    def _step(self, n: int) -> int:
        return max(1, int(self.rate * n))


@numba.njit(cache=True)
def _merge(sums: np.ndarray, labels: np.ndarray, r: int) -> tuple[np.ndarray, np.ndarray]:
    """One round: each even vector proposes to its most similar odd one; the r best pairs merge. Reading order stays.

    Groups are kept as sums, whose directions are those of the size-weighted means, and as the label of each patch.
    Compiled, because a page takes dozens of rounds of a dozen small steps each.
    """
    n, dim = sums.shape
    even, odd = np.empty(((n + 1) // 2, dim), np.float32), np.empty((n // 2, dim), np.float32)
    for i in range(n):
        half = odd if i % 2 else even
        half[i // 2] = sums[i] / max(_length(sums[i]), np.float32(1e-12))
    similarity = np.dot(even, odd.T)
    best, partner = np.empty(len(even), np.float32), np.empty(len(even), np.int64)
    for i in range(len(even)):
        partner[i] = similarity[i].argmax()
        best[i] = similarity[i, partner[i]]
    joined = np.full(n, -1)
    sums = sums.copy()
    for pair in np.argsort(-best, kind="mergesort")[:r]:
        joined[2 * pair] = 2 * partner[pair] + 1
        sums[joined[2 * pair]] += sums[2 * pair]
    kept = np.flatnonzero(joined < 0)
    number = np.empty(n, np.int64)
    number[kept] = np.arange(len(kept))
    for gone in np.flatnonzero(joined >= 0):
        number[gone] = number[joined[gone]]
    return sums[kept], number[labels]


@numba.njit(cache=True, fastmath={"reassoc", "contract"})  # a sum in any order: several numbers at a time
def _length(vector: np.ndarray) -> np.float32:
    total = np.float32(0)
    for value in vector:
        total += value * value
    return np.sqrt(total)
