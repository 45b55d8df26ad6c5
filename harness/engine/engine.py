"""What an engine is, and from `--engine` to one: `processes` (this machine) or `ray` (a cluster, or this machine).

An engine does independent pieces of work and hands back what came out. Pieces are named by indices; workers read pages
themselves. So what comes out is the same whatever the engine, the workers, or who died on the way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeVar

from harness.workers import require_workers, spread
from pruners.core.errors import PruneBoardError

T = TypeVar("T")
R = TypeVar("R")

ENGINES = ("processes", "ray")
CLUSTER = 100_000
"""Cores; of a larger cluster, nobody has told us."""


class WorkEngine(Protocol):
    """The whole of what stages know of where work is done."""

    @property
    def elsewhere(self) -> bool:
        """Whether other machines may work too: then backbones and benchmarks are loaded there, by their names."""
        ...

    @property
    def gpus(self) -> float:
        """How many GPUs the other machines have."""
        ...

    def spread(
        self, work: Callable[[T], R], items: Sequence[T], workers: int, *, ordered: bool = True
    ) -> AbstractContextManager[Iterator[R]]:
        """`work` on every item, by `workers` at a time; results in the order of items, or as they come."""
        ...

    def stations(self, make: Callable[[], Callable[[T], R]], items: Sequence[T], device: str | None) -> Iterator[R]:
        """Long-lived workers, each made once by `make` (it loads a model), do the items; results as they come."""
        ...

    def hands(self, device: str | None) -> int:
        """How many workers encode at once, on a device of this kind."""
        ...


class Processes:
    """Forked processes of this machine. A GPU is used by this process alone: `--part` shares the work among several."""

    elsewhere = False
    gpus = 0.0

    def spread(
        self, work: Callable[[T], R], items: Sequence[T], workers: int, *, ordered: bool = True
    ) -> AbstractContextManager[Iterator[R]]:
        return spread(work, items, workers)

    def stations(self, make: Callable[[], Callable[[T], R]], items: Sequence[T], device: str | None) -> Iterator[R]:
        work = make()
        return (work(item) for item in items)

    def hands(self, device: str | None) -> int:
        return 1


PROCESSES = Processes()


def workers_here(engine: WorkEngine, workers: int) -> int:
    """How many of an engine's workers may be processes of this machine: a cluster has more cores than it."""
    return min(workers, os.cpu_count() or 1) if engine.elsewhere else workers


@contextmanager
def open_engine(
    name: str | None = None,
    workers: int | None = None,
    *,
    ray_address: str | None = None,
    ray_gpus_per_worker: float | None = None,
) -> Iterator[tuple[WorkEngine, int]]:
    """An engine by its name, and how many workers it has: those asked for, or one a core. It ends with the block."""
    if workers is not None:
        here = name != "ray" or ray_address == "local"
        require_workers(workers, (os.cpu_count() or 1) if here else CLUSTER)
    if name in (None, "processes"):
        if ray_address is not None or ray_gpus_per_worker is not None:
            raise PruneBoardError("--ray-address and --ray-gpus-per-worker belong to --engine ray")
        yield PROCESSES, workers or os.cpu_count() or 1
    elif name == "ray":
        from harness.engine.ray import connect

        with connect(ray_address or "auto", workers, ray_gpus_per_worker) as engine:
            yield engine, workers or engine.cores
    else:
        raise PruneBoardError(f"there is no engine {name!r}; there are {' and '.join(ENGINES)}")
