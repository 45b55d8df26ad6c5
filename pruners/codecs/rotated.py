"""TurboQuant's first stage: a random rotation, then one fixed codebook for every number. Nothing is learned.

Reference: Zandieh et al. 2025, TurboQuant (arXiv 2504.19874), the form that minimises the squared error. After a
random rotation each number of a unit vector is nearly normal with variance 1/d, whatever the data, so that the
Lloyd-Max levels of a normal distribution fit all of them. The paper's second stage (a sign sketch of what is left, for
unbiased products) is not here. Queries are rotated, not decoded vectors: so a search needs the rotation, and it counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from pruners import Codec, codec
from pruners.codecs.bits import pack_bits, packed_width, unpack_bits
from pruners.core.codec import filled
from pruners.core.seed import SEED

ROUNDS = 2000  # of Lloyd's iteration; the levels of 4 bits need most


@codec("turboquant", paper="Zandieh et al. 2025, TurboQuant, arXiv 2504.19874")
@dataclass(frozen=True)
class turboquant(Codec):  # noqa: N801
    """A random rotation, of each number 1, 2, 3 or 4 bits by one fixed codebook, and a float16 length a vector."""

    bits: Literal[1, 2, 3, 4] = 2

    def row(self, dim: int) -> np.dtype:
        return np.dtype([("numbers", "u1", (packed_width(dim, self.bits),)), ("length", "<f2")])

    def encode(self, vectors: np.ndarray) -> np.ndarray:
        dim = vectors.shape[1]
        length = np.linalg.norm(vectors, axis=1).astype(np.float16)
        scale = np.where(length > 0, length, 1).astype(np.float32)[:, None] / np.float32(dim**0.5)
        normal = vectors @ rotation(dim).T / scale
        levels = normal_levels(self.bits)
        codes = np.searchsorted((levels[1:] + levels[:-1]) / 2, normal)
        return filled(self.row(dim), numbers=pack_bits(codes, self.bits), length=length)

    def decode(self, rows: np.ndarray, dim: int) -> np.ndarray:
        scale = rows["length"].astype(np.float32)[:, None] / np.float32(dim**0.5)
        return normal_levels(self.bits)[unpack_bits(rows["numbers"], dim, self.bits)] * scale

    def query(self, tokens: np.ndarray) -> np.ndarray:
        return tokens @ rotation(tokens.shape[1]).T

    def shared(self, dim: int) -> dict[str, np.ndarray]:
        found = {"rotation": rotation(dim), "levels": normal_levels(self.bits)}
        return {name: array.astype(np.float16) for name, array in found.items()}

    def shared_bytes(self, dim: int) -> int:
        return 2 * (dim * dim + 2**self.bits)


@lru_cache(maxsize=8)
def rotation(dim: int) -> np.ndarray:
    """A rotation drawn evenly from all, as an index stores it: float16 numbers."""
    basis, triangle = np.linalg.qr(np.random.default_rng(SEED).standard_normal((dim, dim)))
    return (basis * np.sign(np.diag(triangle))).astype(np.float16).astype(np.float32)


@lru_cache(maxsize=8)
def normal_levels(bits: int) -> np.ndarray:
    """The 2^bits levels of least squared error for normal numbers (Lloyd 1982, Max 1960), in float16."""
    from scipy.stats import norm

    levels = norm.ppf((np.arange(2**bits) + 0.5) / 2**bits)
    for _ in range(ROUNDS):  # each level the mean of what is nearest to it
        ends = np.concatenate([[-np.inf], (levels[1:] + levels[:-1]) / 2, [np.inf]])
        levels = -np.diff(norm.pdf(ends)) / np.diff(norm.cdf(ends))
    return levels.astype(np.float16).astype(np.float32)
