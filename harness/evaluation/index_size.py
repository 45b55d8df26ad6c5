"""The rule of bytes: what an index needs at query time, from its vectors, their width and the codec that stores them.

Everything counts that a search reads: codes and scales of each vector, and once for all pages what they share
(codebooks, rotations, means), divided among them. Page ids, which every index has, do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from pruners import Codec
from pruners.codecs.half import float16

Count = TypeVar("Count", int, float, np.ndarray)

FLOAT16 = float16()
"""The codec of an index of which nothing else is said."""


def vector_bits(vectors: Count, dim: int, codec: Codec = FLOAT16, own_bits: int | None = None) -> Count:
    """Bits of so many vectors; `own_bits`: of one that a quantised method stores in a form of its own."""
    return vectors * (own_bits or 8 * codec.row(dim).itemsize)


def bytes_per_page(bits: float, shared_bytes: int, pages: int) -> float:
    """Bytes a page of an index whose vectors take `bits` in all: `shared_bytes` are its codec's and its method's."""
    return float(bits / 8 / pages + shared_bytes / pages)


def own_bytes(bytes_per_page: float, shared_bytes: float, pages: Sequence[int]) -> float:
    """Of the mean of some data sets, of so many pages each: what each page has for itself, whatever the corpus.

    Where a number of pages is not known (0), all of it counts as the pages' own.
    """
    if not shared_bytes or not all(pages):
        return bytes_per_page
    return bytes_per_page - shared_bytes * sum(1 / count for count in pages) / len(pages)
