"""int8 and int4: each number as a whole number, with a scale for each vector.

The scale is rounded to float16 before numbers are divided by it, so that they are rounded with the scale that a search
reads. Levels lie evenly on both sides of 0 (−127 to 127, −7 to 7): a vector and its opposite have opposite codes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pruners import Codec, codec
from pruners.codecs.bits import pack_bits, packed_width, unpack_bits
from pruners.core.codec import filled


def quantise(vectors: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers from −top to top, and the scale of each vector: its largest number becomes top."""
    scale = (np.abs(vectors).max(1) / top).astype(np.float16)
    divisor = np.where(scale > 0, scale, 1).astype(np.float32)[:, None]  # a vector of zeros stays one
    return np.clip(np.rint(vectors / divisor), -top, top).astype(np.int8), scale


@codec("int8")
@dataclass(frozen=True)
class int8(Codec):  # noqa: N801
    """A byte a number, and a float16 scale a vector."""

    def row(self, dim: int) -> np.dtype:
        return np.dtype([("numbers", "i1", (dim,)), ("scale", "<f2")])

    def encode(self, vectors: np.ndarray) -> np.ndarray:
        numbers, scale = quantise(vectors, 127)
        return filled(self.row(vectors.shape[1]), numbers=numbers, scale=scale)

    def decode(self, rows: np.ndarray, dim: int) -> np.ndarray:
        return rows["numbers"] * rows["scale"].astype(np.float32)[:, None]


@codec("int4")
@dataclass(frozen=True)
class int4(Codec):  # noqa: N801
    """Half a byte a number, and a float16 scale a vector."""

    def row(self, dim: int) -> np.dtype:
        return np.dtype([("numbers", "u1", (packed_width(dim, 4),)), ("scale", "<f2")])

    def encode(self, vectors: np.ndarray) -> np.ndarray:
        numbers, scale = quantise(vectors, 7)
        return filled(self.row(vectors.shape[1]), numbers=pack_bits(numbers + 8, 4), scale=scale)  # 1 to 15

    def decode(self, rows: np.ndarray, dim: int) -> np.ndarray:
        numbers = unpack_bits(rows["numbers"], dim, 4).astype(np.float32) - 8
        return numbers * rows["scale"].astype(np.float32)[:, None]
