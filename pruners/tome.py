"""Token Merging by bipartite soft matching. Reference: Bolya et al. 2023, "Token Merging: Your ViT But Faster"
(arXiv 2210.09461), applied to the output vectors instead of inside the encoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numba
import numpy as np

from pruners import Page, PruneBoardError, Reducer, reducer
from pruners.core import trees
from pruners.core.rows import first_highest, set_unit, unit_rows


@reducer("tome", paper="Bolya et al. 2023, Token Merging, arXiv 2210.09461")
@dataclass(frozen=True)
class ToMe(Reducer):
    """Alternate vectors form two sets; the most similar pairs across them merge, size-weighted, round after round.

    Formula:
        each even e_{i} proposes to argmax_{odd j} e_{i}·e_{j}
        the r most similar pairs merge, weighted by size; repeat down to k
    """

    rate: float = 0.1  # of the vectors merged in a round; the original merges 4-8 % in each of a ViT's layers
    renormalize: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 0.5:
            raise PruneBoardError(f"rate is the part merged in a round, above 0 and at most 0.5, not {self.rate}")

    def reduce(self, page: Page) -> Callable[[int], np.ndarray]:
        """A budget cuts the sequence of merges short: what it gets does not depend on which others are asked for.

        Its last round then merges fewer pairs than a full one: the most similar of those that the full one would.
        """
        merges = merge_sequence(page.vectors.numpy(), self.rate)
        return lambda k: trees.cut(merges, k)


@numba.njit(cache=True)
def merge_sequence(vectors: np.ndarray, rate: float) -> np.ndarray:
    """Which vector goes into which, `[N - 1, 2]`: round after round, within a round the most similar pair first.

    In a round each even vector proposes to its most similar odd one. Groups stay where their odd member is, as sums:
    the size-weighted mean of a merge is then a plain addition, and has the same direction. Compiled, because a page
    takes dozens of rounds of a dozen small steps each.
    """
    n = len(vectors)
    sums, directions = vectors.copy(), unit_rows(vectors)
    merges, done, left = np.empty((n - 1, 2), np.int64), 0, np.arange(n)
    while len(left) > 1:
        even, odd = left[0::2], left[1::2]
        similarity = np.dot(directions[even], directions[odd].T)
        best, partner = np.empty(len(even), np.float32), np.empty(len(even), np.int64)
        for i in range(len(even)):
            partner[i] = first_highest(similarity[i])
            best[i] = similarity[i, partner[i]]
        stays = np.ones(n, np.bool_)
        for _ in range(max(1, int(rate * len(left)))):
            pair = first_highest(best)
            best[pair] = -np.inf
            gone, into = even[pair], odd[partner[pair]]
            merges[done, 0], merges[done, 1] = gone, into
            done += 1
            stays[gone] = False
            for d in range(vectors.shape[1]):
                sums[into, d] += sums[gone, d]
            set_unit(directions[into], sums[into])
        left = left[stays[left]]
    return merges
