"""Encoding with pages made ready ahead of the model, so that a GPU does not wait for images to be decoded.

Threads read, hash, resize and measure the ink of the next batches while the model is busy with one: image libraries and
torch let go of Python's lock meanwhile. The very same functions are called on the very same batches, so vectors do not
change by a bit.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from harness.backbones.contract import EncodedPage


def works_ahead(backbone: Any) -> bool:
    """Whether pages of this backbone are made ready ahead: on the CPU the model itself needs the cores."""
    own = getattr(backbone, "works_ahead", None)
    return hasattr(backbone, "prepare") and (torch.device(backbone.device).type != "cpu" if own is None else own)


def encoded_ahead(
    backbone: Any,
    read: Callable[[int], tuple[Any, Callable[[], str]]],
    batches: Sequence[Sequence[int]],
    threads: int | None = None,
) -> Iterator[tuple[list[EncodedPage], list[str]]]:
    """Pages and their hashes, a batch at a time. What goes wrong is raised where its batch would have come."""
    threads = threads or os.cpu_count() or 1
    mine = threading.local()

    def ready(batch: Sequence[int]) -> tuple[Any, list[str]]:
        if not hasattr(mine, "backbone"):
            mine.backbone = backbone.twin()
        found = [read(i) for i in batch]
        return mine.backbone.prepare([page for page, _ in found]), [digest() for _, digest in found]

    with ThreadPoolExecutor(threads) as pool:
        left = iter(batches)
        waiting = deque(pool.submit(ready, batch) for batch in itertools.islice(left, threads + 1))
        try:
            while waiting:
                prepared, hashes = waiting.popleft().result()
                if (batch := next(left, None)) is not None:
                    waiting.append(pool.submit(ready, batch))
                yield backbone.encode_prepared(prepared), hashes
        finally:
            for other in waiting:
                other.cancel()
