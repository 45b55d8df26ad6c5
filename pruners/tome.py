"""Token Merging by bipartite soft matching. Reference: Bolya et al. 2023, "Token Merging: Your ViT But Faster"
(arXiv 2210.09461), applied to the output vectors instead of inside the encoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
        rounds = [(page.vectors, torch.ones(len(page)))]

        def at(k: int) -> torch.Tensor:
            while len(rounds[-1][0]) > k:
                rounds.append(_merge(*rounds[-1], self._step(len(rounds[-1][0]))))
            sums, sizes = next(state for state in reversed(rounds) if len(state[0]) >= k)
            if len(sums) > k:
                sums, sizes = _merge(sums, sizes, len(sums) - k)
            return unit(sums) if self.renormalize else sums / sizes[:, None]

        return at

    def _step(self, n: int) -> int:
        return max(1, int(self.rate * n))


def _merge(sums: torch.Tensor, sizes: torch.Tensor, r: int) -> tuple[torch.Tensor, torch.Tensor]:
    """One round: each even vector proposes to its most similar odd one; the r best pairs merge. Reading order stays.

    Groups are kept as sums and sizes, which makes the size-weighted mean of any merge a plain addition.
    """
    even = torch.arange(0, len(sums), 2)
    odd = torch.arange(1, len(sums), 2)
    directions = unit(sums)
    best, partner = (directions[even] @ directions[odd].T).max(1)
    chosen = torch.argsort(best, descending=True, stable=True)[:r]
    leaving, joined = even[chosen], odd[partner[chosen]]
    sums, sizes = sums.index_add(0, joined, sums[leaving]), sizes.index_add(0, joined, sizes[leaving])
    stays = torch.ones(len(sums), dtype=torch.bool)
    stays[leaving] = False
    return sums[stays], sizes[stays]
