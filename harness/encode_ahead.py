"""Encoding with pages made ready ahead of the model, so that a GPU does not wait for images to be decoded.

Worker processes read, hash and resize the next pages and measure their ink while the model is busy with a batch. A
thread puts those of the next batch side by side, for CUDA in pinned memory; another writes what the model gave of the
last one. Memory is shared with the workers and used again and again: new memory costs more time than what is copied
into it. Pages are prepared one by one, whatever the batch and the workers, and no bit of a store changes.
"""

from __future__ import annotations

import itertools
import math
import mmap
import multiprocessing
import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from typing import Any

import torch

from harness.backbones.batching import available_memory, is_out_of_memory
from harness.backbones.prepared import Prepared
from harness.progress import Advance
from harness.store.encoded_page import EncodedPage
from harness.store.writer import StoreWriter
from harness.workers import start_worker
from pruners.core.errors import PruneBoardError

MOST = 8
"""Processes, unless told otherwise: a page takes 50 ms of one, so eight make 160 pages a second."""
LARGER = 4
"""How many times the first page a page may be to have a place in shared memory. Only memory that is used is taken."""

Read = Callable[[int], tuple[Any, Callable[[], str]]]
"""The page at an index, and a function that hashes it."""


def works_ahead(backbone: Any) -> bool:
    """Whether pages of this backbone are made ready ahead: on the CPU the model itself needs the cores.

    Forked processes inherit the pages; where that is not safe (elsewhere than on Linux) or not allowed (in a daemonic
    process), pages are made ready when their turn comes.
    """
    own = getattr(backbone, "works_ahead", None)
    wanted = torch.device(getattr(backbone, "device", "cpu")).type != "cpu" if own is None else own
    allowed = sys.platform == "linux" and not multiprocessing.current_process().daemon
    return hasattr(backbone, "prepare") and wanted and allowed


def encode_ahead(
    writer: StoreWriter,
    backbone: Any,
    read: Read,
    batches: Sequence[Sequence[str]],
    index: Callable[[str], int],
    workers: int | None,
    advance: Advance,
) -> int:
    """Encode batches that are made ready ahead; how many pages. All of them, unless memory ran out."""
    done = 0

    def write(names: Sequence[str], pages: Sequence[EncodedPage], hashes: Sequence[str]) -> int:
        for name, page, digest in zip(names, pages, hashes, strict=True):
            writer.add(name, page, image=digest)
        advance(len(names))
        return len(names)

    ready = encoded_ahead(backbone, read, [[index(page) for page in batch] for batch in batches], workers)
    with ThreadPoolExecutor(1) as pool, closing(ready) as results:
        writing = pool.submit(write, (), (), ())
        try:
            for names, (pages, hashes) in zip(batches, results, strict=True):
                done += writing.result()
                writing = pool.submit(write, names, pages, hashes)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        done += writing.result()
    return done


def encoded_ahead(
    backbone: Any, read: Read, batches: Sequence[Sequence[int]], workers: int | None = None
) -> Generator[tuple[list[EncodedPage], list[str]]]:
    """Pages and their hashes, a batch at a time, in order. What goes wrong is raised where its batch would come."""
    if not batches:
        return
    with ThreadPoolExecutor(1) as gathering, closing(PagesAhead(backbone, read, batches, workers)) as pages:
        coming = gathering.submit(pages.gather, 0)
        for batch in range(len(batches)):
            prepared, hashes = coming.result()
            if batch + 1 < len(batches):
                coming = gathering.submit(pages.gather, batch + 1)
            yield backbone.encode_prepared(prepared), hashes


class PagesAhead:
    """Pages that processes make ready, in memory that they share with this one."""

    def __init__(self, backbone: Any, read: Read, batches: Sequence[Sequence[int]], workers: int | None) -> None:
        self.backbone, self.read, self.batches = backbone, read, batches
        largest = max(map(len, batches))
        page = backbone.prepare([read(batches[0][0])[0]]).nbytes
        room = max(1, available_memory() // 2 // page - 3 * largest)
        hands = min(workers or MOST, len(os.sched_getaffinity(0)), room)
        self.order = [index for batch in batches for index in batch]
        ahead = min(len(self.order), largest + 2 * hands)
        self.places = [_shared(LARGER * page) for _ in range(ahead)]
        pinned = torch.device(backbone.device).type == "cuda"
        size = LARGER * page if largest == 1 else 2 * page * largest
        self.batch_memory = [torch.empty(size, dtype=torch.uint8, pin_memory=pinned) for _ in range(2)]
        self.pool = ProcessPoolExecutor(
            hands, mp_context=multiprocessing.get_context("fork"), initializer=_start, initargs=(self,)
        )
        self.left, self.taken = iter(range(len(self.order))), 0
        self.waiting: deque[Future[Any]] = deque()
        self.ask_for(ahead)

    def ask_for(self, count: int) -> None:
        """Have so many more pages made ready, if there are."""
        self.waiting.extend(self.pool.submit(_make_ready, position) for position in itertools.islice(self.left, count))

    def make_ready(self, position: int) -> tuple[dict[str, Any], Any, str]:
        """In a worker: a page put into its place. Sent are only where its tensors begin, their shapes and types."""
        page, digest = self.read(self.order[position])
        memory = self.places[position % len(self.places)]
        prepared = self.backbone.side_by_side([self.backbone.prepare([page])], Block(memory).empty)
        sent = {name: _describe(tensor, memory) for name, tensor in prepared.inputs.items()}
        return sent, [(grid, ink.numpy()) for grid, ink in prepared.places], digest()

    def gather(self, batch: int) -> tuple[Prepared, list[str]]:
        """The next batch, in the memory of the one before the last; the places of its pages are then free again."""
        pages, hashes = [], []
        for _ in self.batches[batch]:
            try:
                sent, places, digest = self.waiting.popleft().result()
            except BrokenProcessPool as error:
                raise PruneBoardError(
                    "a process that makes pages ready died without a word, most likely for want of memory. What was "
                    "finished is kept; a smaller --batch-size takes less"
                ) from error
            memory = self.places[self.taken % len(self.places)]
            self.taken += 1
            inputs = {name: _found(described, memory) for name, described in sent.items()}
            pages.append(Prepared(inputs, tuple((grid, torch.from_numpy(ink)) for grid, ink in places)))
            hashes.append(digest)
        prepared = self.backbone.side_by_side(pages, Block(self.batch_memory[batch % 2]).empty)
        self.ask_for(len(pages))
        return prepared, hashes

    def close(self) -> None:
        self.pool.shutdown(cancel_futures=True)


class Block:
    """A piece of memory from which tensors are cut, one after the other; beyond its end they are new memory."""

    def __init__(self, memory: torch.Tensor) -> None:
        self.memory, self.used = memory, 0

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        start = -(-self.used // 64) * 64
        stop = start + math.prod(shape) * dtype.itemsize
        if stop > len(self.memory):
            return torch.empty(shape, dtype=dtype)
        self.used = stop
        return self.memory[start:stop].view(dtype).view(shape)


def _shared(size: int) -> torch.Tensor:
    return torch.frombuffer(mmap.mmap(-1, size), dtype=torch.uint8)


def _describe(tensor: torch.Tensor, memory: torch.Tensor) -> Any:
    """Where a tensor lies in a piece of memory; its numbers, if it did not fit."""
    if tensor.untyped_storage().data_ptr() != memory.untyped_storage().data_ptr():
        return tensor.numpy()
    return tensor.data_ptr() - memory.data_ptr(), tuple(tensor.shape), tensor.dtype


def _found(described: Any, memory: torch.Tensor) -> torch.Tensor:
    if not isinstance(described, tuple):
        return torch.from_numpy(described)
    start, shape, dtype = described
    return memory[start : start + math.prod(shape) * dtype.itemsize].view(dtype).view(shape)


_pages: PagesAhead | None = None  # of a worker


def _start(pages: PagesAhead) -> None:
    global _pages
    _pages = pages
    start_worker()


def _make_ready(position: int) -> Any:
    assert _pages is not None
    return _pages.make_ready(position)
