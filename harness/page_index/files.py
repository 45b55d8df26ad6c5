"""How an index lies on disk. Every file is whole or absent, and known by its checksum.

index.json                 what it is: method, budget, codec, backbone, counts, bytes. Written last: where it is, all is
order.json                 what it is made of, written first: who was killed goes on only with the same
pages-00000.safetensors    of 1,024 pages: `codes [vectors, bytes]` as the codec packs them, `offsets [pages + 1]`, ids
codec.safetensors          what the codec learned, if anything (codebooks, rotations)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

from harness.checked_folder import CheckedFolder

FORMAT = 1
INDEX, ORDER, LEARNED = "index.json", "order.json", "codec.safetensors"
SHARD = 1024
"""Pages of a file: a whole number of a writer's pieces."""


def checked(folder: Path) -> CheckedFolder:
    return CheckedFolder(folder, "Delete it and run the same `harness index` again, which makes it anew")


def shard_name(number: int) -> str:
    return f"pages-{number:05d}.safetensors"


def shard_names(pages: int) -> list[str]:
    """The files of so many pages."""
    return [shard_name(start // SHARD) for start in range(0, pages, SHARD)]


def as_json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def pack_shard(ids: Sequence[str], codes: bytes, counts: Sequence[int], width: int) -> bytes:
    """Codes of pages one after another, `width` bytes a vector."""
    offsets = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    rows = np.frombuffer(codes, np.uint8).reshape(-1, width)
    return save({"codes": rows, "offsets": offsets}, metadata={"pages": json.dumps(list(ids))})


class IndexFile:
    """A file of an index, mapped."""

    def __init__(self, path: Path) -> None:
        self._file: Any = safe_open(path, framework="numpy").__enter__()
        self.ids: list[str] = json.loads(self._file.metadata()["pages"])
        self.offsets: np.ndarray = self._file.get_tensor("offsets")

    def codes(self, start: int, stop: int) -> np.ndarray:
        """Of the vectors from `start` to `stop`, `[vectors, bytes]`."""
        return self._file.get_slice("codes")[start:stop]
