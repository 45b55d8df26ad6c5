"""Work spread over forked processes with one thread each, results in order.

Two processes with one thread each take a third of the time of one with two threads where the pieces are small (a page
to prune, a batch of a small model). Forked, so that methods from a user's file and loaded weights need no pickling.
What comes out does not depend on how many workers there are: one worker also has one thread. Work that needs no torch,
such as checking submissions, does not load it here.
"""

from __future__ import annotations

import collections
import ctypes
import gc
import itertools
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from pruners.core.errors import PruneBoardError

T = TypeVar("T")
R = TypeVar("R")

MOST = 256
"""Workers; more than that, and more than there are cores, is a slip."""
AHEAD = 6
"""Items a worker may be ahead of those whose results were taken."""

_work: Callable[[Any], Any] | None = None  # inherited by forked workers
_in_worker = False  # what a worker does is not spread again: the cores are taken


def require_workers(workers: int, cores: int) -> None:
    """An error unless so many can work where there are so many cores."""
    most = max(MOST, cores)
    if not 1 <= workers <= most:
        raise PruneBoardError(f"{workers} workers: choose 1 to {most}; one a core is the default")


@contextmanager
def spread(work: Callable[[T], R], items: Sequence[T], workers: int, first_here: bool = True) -> Iterator[Iterator[R]]:
    """`work` on every item, in order. The first item is done here, so that workers inherit what it compiled or loaded;
    unless that is there already.

    Results must pickle cheaply: numpy arrays rather than tensors, which torch would send as open files. Workers go a
    little ahead of whoever takes the results, and no further: what waits is held in memory.
    """
    global _work
    if workers:  # 0: nothing to spread
        require_workers(workers, os.cpu_count() or 1)
    outer = _work
    try:
        with one_thread():
            forks = "fork" in multiprocessing.get_all_start_methods() and not _in_worker
            if workers > 1 and len(items) > 1 and forks:
                here = [work(item) for item in items[:first_here]]  # which may spread work of its own
                _work = work
                fork = multiprocessing.get_context("fork")
                pool = ProcessPoolExecutor(workers, mp_context=fork, initializer=start_worker)
                try:
                    yield itertools.chain(here, _in_order(pool, items[first_here:], AHEAD * workers))
                finally:
                    pool.shutdown(cancel_futures=True)  # whoever stops early does not wait for all the rest
            else:
                yield (work(item) for item in items)
    except BrokenProcessPool as error:
        raise PruneBoardError(
            "a worker process died without a word, most likely for want of memory, or killed by what it worked on; "
            "try again with --workers 1 where the command has it. What was finished is kept"
        ) from error
    finally:
        _work = outer


def _in_order(pool: ProcessPoolExecutor, items: Sequence[T], ahead: int) -> Iterator[Any]:
    waiting = collections.deque(pool.submit(_run, item) for item in items[:ahead])
    left = iter(items[ahead:])

    def results() -> Iterator[Any]:
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(pool.submit(_run, item) for item in itertools.islice(left, 1))

    return results()


@contextmanager
def one_thread() -> Iterator[None]:
    """This process computes with one thread while the block runs."""
    with threadpool_limits(1):
        if "torch" not in sys.modules:
            yield
            return
        import torch

        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def start_worker() -> None:
    """What every forked process does first."""
    global _in_worker
    _in_worker = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it is interrupted too, and ends it
    gc.freeze()  # what was inherited is no garbage here, and to look it through would copy its memory
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    if sys.platform == "linux":  # a parent that is killed takes its workers along
        parent_death_signal = 1
        ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)


def _run(item: Any) -> Any:
    assert _work is not None
    return _work(item)
