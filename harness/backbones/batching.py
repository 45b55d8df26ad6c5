"""How many pages go through a backbone at once, and what happens when that was too many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import torch

from harness.backbones.contract import Backbone
from pruners.core.errors import PruneBoardError

T = TypeVar("T")
R = TypeVar("R")

LARGEST_BATCH = 64
CPU_BATCH, CPU_ROOM = 8, 4 * 2**30  # cores are busy with one page already; a few only spread the fixed costs


class OutOfMemoryError(PruneBoardError):
    """A single item does not fit."""


def batch_size_for(backbone: Backbone, page: Callable[[], Any]) -> int:
    """A batch size the memory should hold: on a GPU from what one page took, elsewhere a small constant."""
    device = torch.device(getattr(backbone, "device", "cpu"))
    if device.type == "cuda":
        image = page()
        backbone.encode_pages([image])  # weights are loaded by the first page, and are no part of what a page takes
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        backbone.encode_pages([image])
        taken = max(1, torch.cuda.max_memory_allocated(device) - before)
        torch.cuda.empty_cache()  # what torch keeps for itself counts as free too
        free, _ = torch.cuda.mem_get_info(device)
        return max(1, min(LARGEST_BATCH, int(0.8 * free) // taken))
    return CPU_BATCH if available_memory() > CPU_ROOM else 1


def in_batches(
    encode: Callable[[Sequence[T]], list[R]],
    items: Sequence[T],
    size: int,
    name: Callable[[int], str],
    on_halving: Callable[[int], None] = lambda size: None,
) -> Iterator[list[R]]:
    """Encode `items` in batches of `size`; out of memory, halve it for good and try again. Yields a list a batch."""
    done = 0
    while done < len(items):
        batch = items[done : done + size]
        try:
            results = encode(batch)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if len(batch) == 1:
                raise OutOfMemoryError(
                    f"{name(done)} alone does not fit into memory; use --max-visual-tokens, a smaller backbone, "
                    "--dtype bfloat16, or another --device"
                ) from error
            size = len(batch) // 2
            on_halving(size)
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            continue
        if len(results) != len(batch):
            raise PruneBoardError(f"the backbone returned {len(results)} results for a batch of {len(batch)}")
        yield results
        done += len(batch)


def is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return "not enough memory" in str(error) or "can't allocate memory" in str(error)  # the CPU and MPS allocators


def available_memory() -> int:
    """Bytes of main memory that can be had: what caches of files hold is given back when it is asked for."""
    try:
        with open("/proc/meminfo") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):  # not on this platform: assume there is room, halving covers the rest
        return CPU_ROOM + 1
