"""Codes of a few bits laid side by side in bytes: the first code in a byte's highest bits."""

from __future__ import annotations

import numpy as np


def packed_width(count: int, bits: int) -> int:
    """Bytes of so many codes."""
    return -(-count * bits // 8)


def pack_bits(codes: np.ndarray, bits: int) -> np.ndarray:
    """`codes [k, n]`, each below 2^bits, as bytes `[k, packed_width]`; what is left of the last byte is 0."""
    each = codes.astype(np.uint8)[:, :, None] >> np.arange(bits - 1, -1, -1, dtype=np.uint8) & 1
    return np.packbits(each.reshape(len(codes), -1), axis=1, bitorder="big")


def unpack_bits(data: np.ndarray, count: int, bits: int) -> np.ndarray:
    """The first `count` codes of each row that `pack_bits` wrote, as uint8."""
    each = np.unpackbits(data, axis=1, count=count * bits, bitorder="big").reshape(len(data), count, bits)
    return each @ (1 << np.arange(bits - 1, -1, -1)).astype(np.uint8)
