"""Fewer numbers a vector: the first ones, for retrievers trained for it, or those along learned directions.

What remains is stored as float16. Queries are shortened in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from threadpoolctl import threadpool_limits

from pruners import Codec, PruneBoardError, codec, learned
from pruners.codecs.codebooks import ready
from pruners.core.codec import filled


def halves(codec: Codec, count: int, dim: int) -> np.dtype:
    if not 1 <= count <= dim:
        raise PruneBoardError(f"{codec} cannot keep {count} of the {dim} numbers that these vectors have")
    return np.dtype([("numbers", "<f2", (count,))])


@codec("dims")
@dataclass(frozen=True)
class dims(Codec):  # noqa: N801
    """The first n numbers (Matryoshka truncation), scaled to the length that the whole vector had; queries too."""

    n: int

    def row(self, dim: int) -> np.dtype:
        return halves(self, self.n, dim)

    def width(self, dim: int) -> int:
        return self.n

    def encode(self, vectors: np.ndarray) -> np.ndarray:
        return filled(self.row(vectors.shape[1]), numbers=self.query(vectors))

    def decode(self, rows: np.ndarray, dim: int) -> np.ndarray:
        return rows["numbers"].astype(np.float32)

    def query(self, tokens: np.ndarray) -> np.ndarray:
        kept = tokens[:, : self.n]
        whole, left = (np.linalg.norm(each, axis=1, keepdims=True) for each in (tokens, kept))
        return kept * (whole / np.where(left > 0, left, 1)).astype(np.float32)


@codec("pca")
@dataclass(frozen=True)
class pca(Codec):  # noqa: N801
    """Numbers along the n directions in which calibration pages' vectors are longest; queries along the same.

    Not centred: the directions are those that lose least of inner products, which scores are made of.
    """

    n: int
    directions: np.ndarray | None = learned()
    """`[n, dim]`, float16."""

    def row(self, dim: int) -> np.dtype:
        return halves(self, self.n, dim)

    def width(self, dim: int) -> int:
        return self.n

    def calibrate(self, vectors: np.ndarray) -> Self:
        self.row(vectors.shape[1])
        exact = vectors.astype(np.float64)
        with threadpool_limits(1):  # as `pq`: the same bits whatever the threads
            _, directions = np.linalg.eigh(exact.T @ exact)  # by rising length
        longest = directions[:, ::-1][:, : self.n].T
        signs = np.sign(longest[np.arange(self.n), np.abs(longest).argmax(1)])[:, None]  # a direction has two
        return self.replace(directions=(longest * signs).astype(np.float16))

    def encode(self, vectors: np.ndarray) -> np.ndarray:
        return filled(self.row(vectors.shape[1]), numbers=self.query(vectors))

    def decode(self, rows: np.ndarray, dim: int) -> np.ndarray:
        return rows["numbers"].astype(np.float32)

    def query(self, tokens: np.ndarray) -> np.ndarray:
        return tokens @ ready(self.directions, self).T

    def shared(self, dim: int) -> dict[str, np.ndarray]:
        return {"directions": ready(self.directions, self).astype(np.float16)}

    def shared_bytes(self, dim: int) -> int:
        return 2 * self.n * dim
