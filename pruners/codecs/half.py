"""float16, which every index here is measured in unless another codec is asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pruners import Codec, codec
from pruners.core.codec import filled


@codec("float16")
@dataclass(frozen=True)
class float16(Codec):  # noqa: N801 - named as it is written
    """Each number as a half-precision float. The default, and what other codecs' bytes are compared with."""

    def row(self, dim: int) -> np.dtype:
        return np.dtype([("numbers", "<f2", (dim,))])

    def encode(self, vectors: np.ndarray) -> np.ndarray:
        return filled(self.row(vectors.shape[1]), numbers=vectors)

    def decode(self, rows: np.ndarray, dim: int) -> np.ndarray:
        return rows["numbers"].astype(np.float32)
