"""Quantised patches with attention pruning. Reference: Bach 2025, "Hierarchical Patch Compression for ColPali"
(arXiv 2506.21601): a K-Means codebook, one code a patch, attention top-p. The codebook here is learned from
calibration pages, not from the evaluated corpus.

K-Means starts on a sample: greedy k-means++ and the first iterations need no more, and they would take most of the
time. The last iterations read every vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from pruners import Merged, Page, PruneBoardError, Pruner, Scorer, keep_count, learned, pruner
from pruners.core.apply import SEED
from pruners.core.context import PruneContext
from pruners.eos import eos
from pruners.kernels.rows import add_rows

SAMPLE = 48  # vectors a code
ON_SAMPLE, ON_ALL = 10, 8  # iterations; more of them lower the squared error by less than another seed does
BLOCK = 1024  # vectors assigned at a time: their products with all codes stay in the cache


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
        quantised = self.codebook[_nearest(kept, self.codebook.numpy())]
        return Merged(tuple(quantised[:count] for count in counts), bits_per_vector=self.bits)


def learn_codebook(vectors: np.ndarray, codes: int, rng: np.random.Generator) -> np.ndarray:
    """K-Means centres `[codes, d]` of `vectors [n, d]`."""
    sample = vectors[np.sort(rng.permutation(len(vectors))[: SAMPLE * codes])]
    centres = _seeded(sample, codes, rng)
    for seen in (*[sample] * ON_SAMPLE, *[vectors] * ON_ALL):
        centres = _means(seen, _nearest(seen, centres), centres)
    return centres


def _seeded(vectors: np.ndarray, codes: int, rng: np.random.Generator) -> np.ndarray:
    """Greedy k-means++ (Arthur & Vassilvitskii 2007): of a few candidates drawn in proportion to the squared distance
    from the nearest centre, the one that lowers the sum of these distances most."""
    squares = np.einsum("nd,nd->n", vectors, vectors)
    columns = torch.from_numpy(vectors).T.contiguous()  # torch multiplies it by a few rows in a third of numpy's time
    chosen = [int(rng.integers(len(vectors)))]
    distances = np.maximum(squares - 2 * (vectors[chosen[0]] @ columns.numpy()) + squares[chosen[0]], 0)
    for _ in range(1, codes):
        cumulative = np.cumsum(distances, dtype=np.float64)
        draws = rng.random(2 + int(np.log(codes))) * cumulative[-1]
        candidates = np.minimum(np.searchsorted(cumulative, draws, side="right"), len(vectors) - 1)
        after = squares - 2 * (torch.from_numpy(vectors[candidates]) @ columns).numpy() + squares[candidates, None]
        np.clip(after, 0, distances, out=after)
        best = int(after.sum(1, dtype=np.float64).argmin())
        chosen.append(int(candidates[best]))
        distances = after[best]
    return vectors[chosen]


def _nearest(vectors: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """The nearest centre of each vector: where v·c - |c|²/2 is largest."""
    half = np.einsum("kd,kd->k", centres, centres) / 2
    blocks = (vectors[start : start + BLOCK] for start in range(0, len(vectors), BLOCK))
    return np.concatenate([(block @ centres.T - half).argmax(1) for block in blocks])


def _means(vectors: np.ndarray, nearest: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """The mean of each centre's vectors; a centre without any stays where it is."""
    sums, counts = np.zeros(centres.shape), np.bincount(nearest, minlength=len(centres))[:, None]
    add_rows(sums, nearest, vectors)
    return np.divide(sums, counts, out=centres.astype(np.float64), where=counts > 0).astype(np.float32)
