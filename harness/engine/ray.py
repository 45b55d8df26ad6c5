"""The engine on Ray: a cluster, or this machine as one. What dies is done again by Ray; results are the same.

What travels are pieces of work named by indices, a method by its value, and counts: never a store, which every node
reads from a shared folder. A worker first compares code and libraries with those where the work was begun.
"""

from __future__ import annotations

import collections
import itertools
import os
import pickle
import socket
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from harness.engine.sameness import node_name, require_same, whereabouts
from harness.workers import AHEAD, one_thread
from pruners.core.errors import PruneBoardError

SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nobody is told that it runs
    "RAY_worker_niceness": "0",  # of a cluster begun here: as urgent as other processes
    "RAY_raylet_start_wait_time_s": "120",  # a busy machine needs more than 30
    "RAY_NUM_REDIS_GET_RETRIES": "5",  # a cluster that is gone is tried for minutes, not for a quarter of an hour
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # a coming default, of which Ray warns at each start
}
for name, value in SETTINGS.items():
    os.environ.setdefault(name, value)

try:
    import cloudpickle
    import ray
    from ray import exceptions
except ImportError as error:  # said where somebody asks for this engine, and nowhere else
    raise PruneBoardError(
        f"--engine ray needs Ray, which cannot be loaded ({error}): pip install 'pruneboard[ray]' on every node"
    ) from error

T = TypeVar("T")
R = TypeVar("R")

PATIENCE = 10.0
"""Seconds in which an address must answer."""
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""How HTTP/2 begins, which Ray's nodes speak: whoever does too answers at once."""
RETRIES = 10
"""Times that a piece of work is done again because its worker or node died."""
LOOK = 20.0
"""Seconds without a result after which is looked whether anybody is left to work."""
OBJECT_STORE = 512 * 2**20
"""Bytes of shared memory of a Ray that is started here: what waits there are some counts, a few megabytes each."""


@contextmanager
def connect(address: str, workers: int | None, gpus_per_worker: float | None) -> Iterator[RayEngine]:
    """A connection to a cluster: `auto` finds the one of this machine, `local` starts one here, else HOST:PORT."""
    if gpus_per_worker is not None and gpus_per_worker < 0:
        raise PruneBoardError(f"--ray-gpus-per-worker is 0 or more, not {gpus_per_worker:g}")
    if ours := not ray.is_initialized():
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if address == "local":
            quiet |= {"include_dashboard": False, "object_store_memory": OBJECT_STORE}
            ray.init("local", num_cpus=workers, **quiet)
        else:
            _require_answer(address)
            try:
                ray.init(address, **quiet)
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise _no_cluster(address, str(error).splitlines()[0]) from error
    engine = RayEngine(gpus_per_worker)
    try:
        if gpus_per_worker and gpus_per_worker > (most := _most_gpus()):
            raise _no_room(gpus_per_worker, most)
        yield engine
    finally:
        engine.dismiss()
        if ours:
            ray.shutdown()


def _require_answer(address: str) -> None:
    """Ray itself would try for minutes."""
    found = _cluster_here() if address == "auto" else address
    if not found or "://" in found:
        return
    host, _, port = found.rpartition(":")
    if not host or not port.isdigit():
        raise PruneBoardError(f"--ray-address is auto, local or HOST:PORT, not {found!r}")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE) as opened:
            opened.sendall(HELLO)
            if not opened.recv(1):
                raise ConnectionError("what listens there does not speak with Ray")
    except OSError as error:
        raise _no_cluster(found, str(error)) from error


def _cluster_here() -> str:
    """The address that Ray takes for `auto`: it may be that of a cluster which is gone. Nothing if there is none."""
    try:
        from ray._private.services import get_ray_address_from_environment as find  # Ray tells it in no public way
    except ImportError:  # a release that has it elsewhere: Ray finds it, or tries for minutes
        return os.environ.get("RAY_ADDRESS", "")
    try:
        return find("auto", None) or ""
    except ConnectionError:
        return ""


def _no_cluster(address: str, why: str) -> PruneBoardError:
    return PruneBoardError(
        f"no Ray cluster answers at {address} ({why}). `ray start --head` begins one; --ray-address local starts one "
        "here, for as long as the command runs"
    )


def _most_gpus() -> float:
    """Of one node."""
    return max((node["Resources"].get("GPU", 0.0) for node in ray.nodes() if node["Alive"]), default=0.0)


def _no_room(share: float, most: float) -> PruneBoardError:
    return PruneBoardError(
        f"--ray-gpus-per-worker {share:g}: no node has so many GPUs, the most is {most:g}. Give fewer, or --device cpu"
    )


class RayEngine:
    """Tasks for small pieces of work, actors where something large is loaded first."""

    elsewhere = True

    def __init__(self, gpus_per_worker: float | None = None) -> None:
        self.gpus_per_worker = gpus_per_worker
        self._stations: list[Any] = []
        self._made = b""
        """What the stations were made by."""

    @property
    def cores(self) -> int:
        return max(1, int(ray.cluster_resources().get("CPU", 1)))

    @property
    def gpus(self) -> float:
        return float(ray.cluster_resources().get("GPU", 0))

    def share(self, device: str | None) -> float:
        """Of a GPU, for each worker that encodes."""
        if device == "cpu":
            return 0.0
        return self.gpus_per_worker if self.gpus_per_worker is not None else float(self.gpus > 0)

    def hands(self, device: str | None) -> int:
        """Never none: then everything would be left to this process, or wait for ever."""
        share = self.share(device)
        hands = min(self.cores, int(self.gpus / share + 1e-9)) if share else self.cores
        if hands < 1:
            raise _no_room(share, self.gpus)
        return hands

    @contextmanager
    def spread(
        self, work: Callable[[T], R], items: Sequence[T], workers: int, *, ordered: bool = True
    ) -> Iterator[Iterator[R]]:
        """Tasks, each with one thread, some ahead of whoever takes the results."""
        self.dismiss()
        sent, key = ray.put(cloudpickle.dumps(work)), uuid.uuid4().hex
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(_run)
        waiting: collections.deque[ray.ObjectRef] = collections.deque()

        def results() -> Iterator[R]:
            left = iter(items)
            for item in itertools.islice(left, AHEAD * workers):
                waiting.append(task.remote([sent], key, whereabouts(), item))
            while waiting:
                done = _finished(list(waiting)[:1] if ordered else list(waiting))
                waiting.remove(done)
                for item in itertools.islice(left, 1):
                    waiting.append(task.remote([sent], key, whereabouts(), item))
                yield _value(done)

        try:
            yield results()
        finally:
            for other in waiting:  # whoever stops early does not wait for all the rest
                ray.cancel(other, force=False)

    def stations(self, make: Callable[[], Callable[[T], R]], items: Sequence[T], device: str | None) -> Iterator[R]:
        """Actors. One that dies is replaced when there is room, and what it worked on goes to the next that is free.

        They stay for the next call with the same `make`: what they loaded is loaded once.
        """
        sent = cloudpickle.dumps(make)
        if self._made != sent:
            self.dismiss()
            self._made = sent
        hands = min(self.hands(device), len(items))
        todo, deaths = collections.deque(range(len(items))), collections.Counter[int | None]()
        doing: dict[ray.ObjectRef, tuple[Any, int | None]] = {}  # stations and items; None: it is being made
        for _ in range(hands - len(self._stations)):
            self._begin(doing, device)
        while True:
            self._hand_out(items, todo, doing)
            if not todo and all(item is None for _, item in doing.values()):
                break
            done = _finished(list(doing))
            station, item = doing.pop(done)
            try:
                found = _value(done)
            except exceptions.RayActorError as error:
                deaths[item] += 1
                # a node that dies takes all its workers along: what counts is how often the same work ended one
                if deaths[item] > (RETRIES * hands if item is None else RETRIES):
                    what = "before they could begin" if item is None else "over the same piece of work"
                    raise PruneBoardError(
                        f"{deaths[item]} workers died {what}, the last with: {error}. What was finished is kept"
                    ) from error
                self._stations.remove(station)
                if item is not None:
                    todo.appendleft(item)
                self._begin(doing, device)
                continue
            if item is not None:
                yield found
        for station, _ in doing.values():  # one that was never made, for want of room
            self._stations.remove(station)
            ray.kill(station)

    def _hand_out(
        self, items: Sequence[Any], todo: collections.deque[int], doing: dict[ray.ObjectRef, tuple[Any, int | None]]
    ) -> None:
        """To every station that has nothing to do: also what a dead one left when the others were done already."""
        busy = [station for station, _ in doing.values()]
        for station in [each for each in self._stations if each not in busy][: len(todo)]:
            item = todo.popleft()
            doing[station.work.remote(items[item])] = station, item

    def _begin(self, doing: dict[ray.ObjectRef, tuple[Any, Any]], device: str | None) -> None:
        kind: Any = ray.remote(num_cpus=1, num_gpus=self.share(device))(_Station)
        station = kind.remote()
        self._stations.append(station)
        doing[station.make.remote(self._made, whereabouts(), os.getcwd())] = station, None

    def dismiss(self) -> None:
        """No stations are left, and others have their cores."""
        for station in self._stations:
            ray.kill(station)
        self._stations.clear()
        self._made = b""


class _Station:
    """In a worker: what was made once, and works on item after item."""

    def make(self, sent: bytes, expected: dict[str, str], folder: str) -> bytes:
        with suppress(OSError):  # names of files are meant as where the work was begun, if that folder is here too
            os.chdir(folder)
        return _outcome(lambda: self._make(sent, expected))

    def _make(self, sent: bytes, expected: dict[str, str]) -> None:
        require_same(expected)
        self._work = pickle.loads(sent)()

    def work(self, item: Any) -> bytes:
        return _outcome(lambda: self._work(item))


_known: dict[str, Callable[[Any], Any]] = {}
"""In a worker: the work it was last sent."""


def _run(sent: list[ray.ObjectRef], key: str, expected: dict[str, str], item: Any) -> bytes:
    def work() -> Any:
        if key not in _known:
            require_same(expected)
            _known.clear()
            _known[key] = pickle.loads(ray.get(sent[0]))
        with one_thread():
            return _known[key](item)

    return _outcome(work)


def _outcome(work: Callable[[], Any]) -> bytes:
    """What came out, as bytes that are the driver's own when it has read them; or why nothing did, and where."""
    try:
        return pickle.dumps((work(), None))
    except (PruneBoardError, OSError) as error:
        told = str(error) if isinstance(error, PruneBoardError) else f"{type(error).__name__}: {error}"
        return pickle.dumps((None, f"on node {node_name()}: {told}"))


def _value(done: ray.ObjectRef) -> Any:
    try:
        found, refused = pickle.loads(ray.get(done))
    except exceptions.RayTaskError as error:  # a fault of ours, or of what a worker was given: as it was raised there
        raise error.as_instanceof_cause() from None
    except exceptions.RayActorError:
        raise
    except exceptions.RayError as error:
        raise PruneBoardError(
            f"a piece of work could not be done {RETRIES + 1} times, most likely for want of memory, or because what "
            f"it worked on ended its process: {str(error).splitlines()[0]}. What was finished is kept"
        ) from error
    if refused is not None:
        raise PruneBoardError(refused)
    return found


def _finished(waiting: list[ray.ObjectRef]) -> ray.ObjectRef:
    """One of them that is done, in time; an error if nobody is left who could do it."""
    while True:
        done, _ = ray.wait(waiting, num_returns=1, timeout=LOOK)
        if done:
            return done[0]
        if ray.cluster_resources().get("CPU", 0) < 1:
            raise PruneBoardError("no node with a core is left in the Ray cluster; what was finished is kept")
