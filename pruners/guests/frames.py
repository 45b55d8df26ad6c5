"""What goes between us and a guest's process: one JSON object and plain arrays. Reading it runs nothing.

A frame is the length of the JSON text (8 bytes), that text, and the arrays' bytes one after another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from pruners.core.errors import PrunerError
from pruners.core.plain_text import printable_lines

MOST = 2**31
"""Bytes of a frame that are read at most."""

KINDS = frozenset(np.dtype(kind).str for kind in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "b1"))
Arrays = dict[str, np.ndarray]


LONGEST_ERROR = 4000
"""Characters of a guest's words that an error repeats."""


class FrameError(PrunerError):
    """A guest's process wrote what is no frame, or no sense. The text may hold its words, so it is made plain."""

    def __init__(self, text: str) -> None:
        super().__init__(printable_lines(text, LONGEST_ERROR))


def pack(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    parts = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    shapes = {name: [part.dtype.str, list(part.shape)] for name, part in parts.items()}
    text = json.dumps({"header": header, "arrays": shapes}).encode()
    return b"".join([len(text).to_bytes(8, "little"), text, *(part.tobytes() for part in parts.values())])


def unpack(data: bytes | memoryview) -> tuple[dict[str, Any], Arrays]:
    """A frame's JSON object and arrays, which share its memory and cannot be written."""
    try:
        at = 8 + int.from_bytes(data[:8], "little")
        about = json.loads(bytes(data[8:at]))
        header, shapes, arrays = about["header"], about["arrays"], {}
        if not isinstance(header, dict):
            raise ValueError("its header is no object")
        for name, (kind, shape) in shapes.items():
            if kind not in KINDS or not all(type(side) is int and side >= 0 for side in shape):
                raise ValueError(f"it has an array of {kind} {shape}")
            dtype, count = np.dtype(kind), int(np.prod(shape, dtype=object))
            arrays[name] = np.frombuffer(data, dtype, count, at).reshape(shape)
            at += count * dtype.itemsize
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise FrameError(f"what its process sent cannot be read: {error}") from error
    return header, arrays


def blob(data: bytes) -> np.ndarray:
    """Bytes as an array."""
    return np.frombuffer(data, np.uint8)
