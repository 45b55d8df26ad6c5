"""Every codec's bytes read by hand: a vector at a time, bit by bit, in plain Python numbers (float64).

Written from what the docs say lies in a file, and from nothing of `pruners/codecs`: what these read must be what was
scored. `shared` holds the arrays that all pages share, as they are stored.
"""

import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

Vector = list[float]
Shared = Mapping[str, np.ndarray]


def bits_of(data: bytes, count: int, width: int) -> list[int]:
    """`count` codes of `width` bits, the first in the first byte's highest bits."""
    whole = int.from_bytes(data, "big")
    return [whole >> (8 * len(data) - width * (i + 1)) & (1 << width) - 1 for i in range(count)]


def half(data: bytes) -> float:
    return struct.unpack("<e", data)[0]


def floats(data: bytes) -> Vector:
    return list(struct.unpack(f"<{len(data) // 2}e", data))


def plain_int8(data: bytes, dim: int, shared: Shared) -> Vector:
    return [number * half(data[dim:]) for number in struct.unpack(f"{dim}b", data[:dim])]


def plain_int4(data: bytes, dim: int, shared: Shared) -> Vector:
    return [(code - 8) * half(data[-2:]) for code in bits_of(data[:-2], dim, 4)]


def plain_binary(data: bytes, dim: int, shared: Shared) -> Vector:
    return [(1 if bit else -1) / math.sqrt(dim) for bit in bits_of(data, dim, 1)]


def plain_pq(data: bytes, dim: int, shared: Shared) -> Vector:
    return [float(number) for part, code in enumerate(data) for number in shared["codebooks"][part, code]]


def plain_residual(data: bytes, dim: int, shared: Shared) -> Vector:
    width = len(shared["levels"]).bit_length() - 1
    centre = shared["centres"][data[0]]
    return [float(centre[i]) + float(shared["levels"][code]) for i, code in enumerate(bits_of(data[1:], dim, width))]


def plain_turboquant(data: bytes, dim: int, shared: Shared) -> Vector:
    width = len(shared["levels"]).bit_length() - 1
    codes = bits_of(data[:-2], dim, width)
    return [float(shared["levels"][code]) * half(data[-2:]) / math.sqrt(dim) for code in codes]


def plain_floats(data: bytes, dim: int, shared: Shared) -> Vector:
    return floats(data)


DECODERS: dict[str, Any] = {
    "float16": plain_floats,
    "int8": plain_int8,
    "int4": plain_int4,
    "binary": plain_binary,
    "binary_both": plain_binary,
    "pq": plain_pq,
    "residual": plain_residual,
    "turboquant": plain_turboquant,
    "dims": plain_floats,
    "pca": plain_floats,
}


def plain_query(name: str, token: Vector, parameters: Mapping[str, Any], shared: Shared) -> Vector:
    """A query's vector as the codec compares it."""
    if name == "binary_both":
        return [(1 if number >= 0 else -1) / math.sqrt(len(token)) for number in token]
    if name == "dims":
        first = token[: parameters["n"]]
        return [number * math.hypot(*token) / math.hypot(*first) for number in first]
    if name in ("pca", "turboquant"):
        rows = shared["directions" if name == "pca" else "rotation"]
        return [math.fsum(float(a) * b for a, b in zip(row, token, strict=True)) for row in rows]
    return token


def plain_maxsim(query: list[Vector], page: list[Vector]) -> float:
    """The sum over a query's vectors of the largest product with one of the page's."""
    return math.fsum(max(sum(a * b for a, b in zip(token, v, strict=True)) for v in page) for token in query)
