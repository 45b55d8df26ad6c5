"""Quantised patches with attention pruning. Reference: Bach 2025, "Hierarchical Patch Compression for ColPali"
(arXiv 2506.21601): a K-Means codebook, one code a patch, attention top-p. The codebook here is learned from
calibration pages, not from the evaluated corpus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from threadpoolctl import threadpool_limits
from typing_extensions import Self

from pruners import Merged, Page, PruneBoardError, Pruner, Scorer, keep_count, learned, pruner
from pruners.core.apply import SEED
from pruners.core.contract import Given
from pruners.eos import eos


@pruner("hpc", output="quantised", budget="fixed", needs=("eos",), paper="Bach 2025, HPC-ColPali, arXiv 2506.21601")
@dataclass(frozen=True)
class Hpc(Pruner):
    """Keep the top patches by attention and store for each the number of its nearest of K codebook vectors."""

    by: Scorer = eos()
    codes: int = 256
    codebook: torch.Tensor | None = learned()

    def __post_init__(self) -> None:
        if self.codes < 2:
            raise PruneBoardError(f"a codebook has at least 2 codes, not {self.codes}")

    @property
    def bits(self) -> int:
        """⌈log2 K⌉ bits a patch."""
        return (self.codes - 1).bit_length()

    @property
    def shared_bytes(self) -> int:
        """The codebook, in float16."""
        return 0 if self.codebook is None else self.codebook.numel() * 2

    def calibrate(self, pages: Sequence[Page], budgets: Sequence[float]) -> Self:
        from sklearn.cluster import KMeans

        vectors = torch.cat([page.vectors for page in pages]) if pages else torch.empty(0)
        if len(vectors) < self.codes:
            raise PruneBoardError(
                f"{self} learns {self.codes} codes, but its calibration pages have {len(vectors)} vectors; give it more"
            )
        model = KMeans(self.codes, random_state=SEED, n_init=1, max_iter=25)  # closer than mini-batches, and quicker
        with threadpool_limits(1):  # threads add up their sums in any order: the codebook would differ in its last bits
            centres = torch.from_numpy(model.fit(vectors.numpy()).cluster_centers_)
        return self.replace(codebook=centres.half().float())  # as an index stores it

    def prune(self, page: Page, budgets: Sequence[float], given: Given) -> Merged:
        if self.codebook is None:
            raise PruneBoardError("it has no codebook yet; call calibrate(pages, budgets) first")
        _, order = self.by.ranked(page, given)
        codes = torch.cdist(page.vectors, self.codebook).argmin(1)
        kept = (codes[order[: keep_count(budget, len(page))]] for budget in budgets)
        return Merged(tuple(self.codebook[chosen] for chosen in kept), bits_per_vector=self.bits)
