"""Quantised patches with attention pruning. Reference: Bach 2025, "Hierarchical Patch Compression for ColPali"
(arXiv 2506.21601): a K-Means codebook, one code a patch, attention top-p. The codebook here is learned from
calibration pages, not from the evaluated corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from pruners import Merged, Page, PruneBoardError, Pruner, Scorer, keep_count, learned, pruner
from pruners.core.codebook import learn_codebook, nearest
from pruners.core.context import PruneContext
from pruners.core.seed import SEED
from pruners.eos import eos


@pruner("hpc", output="quantised", budget="fixed", needs=("eos",), paper="Bach 2025, HPC-ColPali, arXiv 2506.21601")
@dataclass(frozen=True)
class Hpc(Pruner):
    """Keep the top patches by attention and store for each the number of its nearest of K codebook vectors.

    Formula:
        c_{j} = argmin_{c} ‖e_{j} − b_{c}‖, b_{1} … b_{K} the codebook
        keep the k codes with the most EOS attention
    """

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
        vectors = torch.cat([page.vectors for page in pages]) if pages else torch.empty(0)
        if len(vectors) < self.codes:
            raise PruneBoardError(
                f"{self} learns {self.codes} codes, but its calibration pages have {len(vectors)} vectors; give it more"
            )
        with threadpool_limits(1):  # a product shared among threads may differ in its last bits
            centres = torch.from_numpy(learn_codebook(vectors.numpy(), self.codes, np.random.default_rng(SEED)))
        return self.replace(codebook=centres.half().float())  # as an index stores it

    def prune(self, page: Page, budgets: Sequence[float], context: PruneContext) -> Merged:
        if self.codebook is None:
            raise PruneBoardError("it has no codebook yet; call calibrate(pages, budgets) first")
        _, order = self.by.ranked(page, context)
        counts = [keep_count(budget, len(page)) for budget in budgets]
        kept = page.vectors.numpy()[order[: max(counts)]]
        quantised = self.codebook[nearest(kept, self.codebook.numpy())]
        return Merged(tuple(quantised[:count] for count in counts), bits_per_vector=self.bits)
