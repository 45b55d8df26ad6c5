"""Codecs that learn codebooks from calibration pages: product quantisation, and residuals to a nearest centre.

References: Jégou et al. 2011, "Product quantization for nearest neighbor search"; Santhanam et al. 2022, PLAID (arXiv
2205.09707). Unlike PLAID, which learns from the indexed corpus, codebooks here come from calibration pages, and decoded
vectors keep the length they have: merged vectors need not be of norm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from threadpoolctl import threadpool_limits

from pruners import Codec, PruneBoardError, codec, learned
from pruners.codecs.bits import pack_bits, packed_width, unpack_bits
from pruners.core.codebook import learn_codebook, nearest
from pruners.core.codec import filled
from pruners.core.seed import SEED

LEARNED_FROM = 64  # vectors a code, drawn from the calibration pages
CODES = 256


def drawn(vectors: np.ndarray, codes: int, codec: Codec) -> tuple[np.ndarray, np.random.Generator]:
    """The vectors a codebook is learned from, and the generator that drew them."""
    if len(vectors) < codes:
        raise PruneBoardError(f"{codec} learns {codes} codes, but calibration pages have {len(vectors)} vectors")
    rng = np.random.default_rng(SEED)
    return vectors[np.sort(rng.permutation(len(vectors))[: LEARNED_FROM * codes])], rng


def ready(learned: np.ndarray | None, codec: Codec) -> np.ndarray:
    if learned is None:
        raise PruneBoardError(f"{codec} has no codebook yet; call calibrate(vectors) first")
    return learned.astype(np.float32)


@codec("pq", paper="Jégou et al. 2011")
@dataclass(frozen=True)
class pq(Codec):  # noqa: N801
    """Product quantisation: a vector cut into parts, of each part a byte: the nearest of 256 learned centres."""

    parts: int = 16
    codebooks: np.ndarray | None = learned()
    """`[parts, 256, dim / parts]`, float16."""

    def row(self, dim: int) -> np.dtype:
        if self.parts < 1 or dim % self.parts:
            raise PruneBoardError(f"{self} cannot cut vectors of {dim} numbers into {self.parts} equal parts")
        return np.dtype([("codes", "u1", (self.parts,))])

    def calibrate(self, vectors: np.ndarray) -> Self:
        self.row(vectors.shape[1])
        seen, rng = drawn(vectors, CODES, self)
        with threadpool_limits(1):  # a product shared among threads may differ in its last bits
            parts = np.split(seen, self.parts, axis=1)
            books = [learn_codebook(np.ascontiguousarray(part), CODES, rng) for part in parts]
        return self.replace(codebooks=np.stack(books).astype(np.float16))

    def encode(self, vectors: np.ndarray) -> np.ndarray:
        parts = np.split(vectors, self.parts, axis=1)
        codes = [nearest(part, book) for part, book in zip(parts, ready(self.codebooks, self), strict=True)]
        return filled(self.row(vectors.shape[1]), codes=np.stack(codes, axis=1))

    def decode(self, rows: np.ndarray, dim: int) -> np.ndarray:
        books = ready(self.codebooks, self)
        return np.concatenate([book[codes] for book, codes in zip(books, rows["codes"].T, strict=True)], axis=1)

    def shared(self, dim: int) -> dict[str, np.ndarray]:
        return {"codebooks": ready(self.codebooks, self).astype(np.float16)}

    def shared_bytes(self, dim: int) -> int:
        return 2 * CODES * dim


@codec("residual", paper="Santhanam et al. 2022, PLAID, arXiv 2205.09707")
@dataclass(frozen=True)
class residual(Codec):  # noqa: N801
    """As PLAID does: the nearest of learned centres, and of each number's difference from it 1, 2 or 4 bits.

    The levels of differences are quantiles of those on calibration pages, the same for all numbers.
    """

    bits: Literal[1, 2, 4] = 2
    codes: int = 256
    centres: np.ndarray | None = learned()
    """`[codes, dim]`, float16."""
    cutoffs: np.ndarray | None = learned()
    """Between neighbouring levels."""
    levels: np.ndarray | None = learned()
    """What a code stands for, `[2^bits]`, float16."""

    def __post_init__(self) -> None:
        if not 2 <= self.codes <= 65536:
            raise PruneBoardError(f"residual has 2 to 65,536 centres, not {self.codes}")

    def row(self, dim: int) -> np.dtype:
        centre = "u1" if self.codes <= 256 else "<u2"
        return np.dtype([("centre", centre), ("differences", "u1", (packed_width(dim, self.bits),))])

    def calibrate(self, vectors: np.ndarray) -> Self:
        seen, rng = drawn(vectors, self.codes, self)
        with threadpool_limits(1):
            centres = learn_codebook(seen, self.codes, rng).astype(np.float16).astype(np.float32)
            apart = seen - centres[nearest(seen, centres)]
        steps = np.arange(2**self.bits) / 2**self.bits  # PLAID: cut at these quantiles, stand for those halfway between
        cutoffs, levels = np.quantile(apart, steps[1:]), np.quantile(apart, steps + 0.5 / 2**self.bits)
        return self.replace(
            centres=centres.astype(np.float16), cutoffs=cutoffs.astype(np.float32), levels=levels.astype(np.float16)
        )

    def encode(self, vectors: np.ndarray) -> np.ndarray:
        centres = ready(self.centres, self)
        centre = nearest(vectors, centres)
        codes = np.searchsorted(ready(self.cutoffs, self), vectors - centres[centre])
        return filled(self.row(vectors.shape[1]), centre=centre, differences=pack_bits(codes, self.bits))

    def decode(self, rows: np.ndarray, dim: int) -> np.ndarray:
        codes = unpack_bits(rows["differences"], dim, self.bits)
        return ready(self.centres, self)[rows["centre"]] + ready(self.levels, self)[codes]

    def shared(self, dim: int) -> dict[str, np.ndarray]:  # cutoffs are for encoding only
        found = {"centres": self.centres, "levels": self.levels}
        return {name: ready(array, self).astype(np.float16) for name, array in found.items()}

    def shared_bytes(self, dim: int) -> int:
        return 2 * (self.codes * dim + 2**self.bits)
