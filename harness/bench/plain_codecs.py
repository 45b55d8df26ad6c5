"""Every codec's bytes read by plain numpy, a record at a time: what our decoders are held against, and timed beside.

Written from what docs/codecs.md says lies in a file, and from nothing of `pruners/codecs`. The tests have another such
reader, in plain Python; here numpy is used as one does without thought of speed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from pruners import Codec, PruneBoardError

TOLERANCE = 1e-5  # of a number of a vector
Shared = Mapping[str, np.ndarray]


def plain_decode(codec: Codec, data: bytes, dim: int) -> np.ndarray:
    """The vectors that a file of the codec holds; `codec` says what it shares, and how long a record is."""
    size, read = codec.row(dim).itemsize, READERS[codec.name]
    shared = {name: array.astype(np.float32) for name, array in codec.shared(dim).items()}
    return np.stack([read(data[at : at + size], dim, shared) for at in range(0, len(data), size)])


def refuse_other_vectors(codec: Codec, data: bytes, dim: int) -> None:
    """A time is worth nothing if what was decoded is something else."""
    if not np.allclose(plain_decode(codec, data, dim), codec.unpack(data, dim), rtol=0, atol=TOLERANCE):
        raise PruneBoardError(f"{codec} decodes otherwise than plain numpy does, so times mean nothing")


def _codes(data: bytes, count: int, width: int) -> np.ndarray:
    """`count` codes of `width` bits, the first in the first byte's highest."""
    bits = (np.frombuffer(data, np.uint8)[:, None] >> np.arange(7, -1, -1) & 1).ravel()[: count * width]
    return bits.reshape(count, width) @ 2 ** np.arange(width - 1, -1, -1)


def _halves(data: bytes) -> np.ndarray:
    return np.frombuffer(data, "<f2").astype(np.float32)


def _int8(data: bytes, dim: int, shared: Shared) -> np.ndarray:
    return np.frombuffer(data[:dim], np.int8) * _halves(data[dim:])


def _int4(data: bytes, dim: int, shared: Shared) -> np.ndarray:
    return (_codes(data[:-2], dim, 4) - 8) * _halves(data[-2:])


def _binary(data: bytes, dim: int, shared: Shared) -> np.ndarray:
    return (2 * _codes(data, dim, 1) - 1) / np.sqrt(dim)


def _pq(data: bytes, dim: int, shared: Shared) -> np.ndarray:
    return np.concatenate([shared["codebooks"][part, code] for part, code in enumerate(data)])


def _residual(data: bytes, dim: int, shared: Shared) -> np.ndarray:
    """The number of a centre takes a byte where there are 256 or fewer, else two."""
    centre = 1 if len(shared["centres"]) <= 256 else 2
    codes = _codes(data[centre:], dim, len(shared["levels"]).bit_length() - 1)
    return shared["centres"][int.from_bytes(data[:centre], "little")] + shared["levels"][codes]


def _turboquant(data: bytes, dim: int, shared: Shared) -> np.ndarray:
    codes = _codes(data[:-2], dim, len(shared["levels"]).bit_length() - 1)
    return shared["levels"][codes] * _halves(data[-2:]) / np.sqrt(dim)


def _numbers(data: bytes, dim: int, shared: Shared) -> np.ndarray:
    return _halves(data)


READERS: dict[str, Callable[[bytes, int, Shared], np.ndarray]] = {
    **dict.fromkeys(("float16", "dims", "pca"), _numbers),
    **dict.fromkeys(("binary", "binary_both"), _binary),
    "int8": _int8,
    "int4": _int4,
    "pq": _pq,
    "residual": _residual,
    "turboquant": _turboquant,
}
