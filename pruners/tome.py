"""Token Merging by bipartite soft matching. Reference: Bolya et al. 2023, "Token Merging: Your ViT But Faster"
(arXiv 2210.09461), applied to the output vectors instead of inside the encoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pruners import Page, PruneBoardError, Reducer, reducer
from pruners.kernels.tome import merge_sequence
from pruners.kernels.trees import cut


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
        return lambda k: cut(merges, k)
