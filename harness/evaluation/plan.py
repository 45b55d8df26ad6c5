"""The plan of an evaluation before any work: what is here, what must be fetched, what it will take.

Pages, queries and what is encoded already are counted; vectors, bytes and time of a page come from two pages that are
encoded to see (or from a stated rate). Nothing is written and no hub is asked.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.backbones.base import choose_device
from harness.backbones.batching import available_memory
from harness.backbones.checkpoint import weight_files
from harness.backbones.contract import Backbone, EncodedPage
from harness.backbones.store import StoreBackbone
from harness.benchmarks.benchmark import Benchmark, load_benchmark
from harness.benchmarks.data_set import DataSet
from harness.encode import made_by, page_reader, store_folder
from harness.engine.engine import PROCESSES, WorkEngine
from harness.evaluation.config import Config
from harness.evaluation.methods import Method
from harness.evaluation.presence import DataNeed, calibration_of, data_needs, find_backbone
from harness.store.format import MANIFEST, Manifest, StoreError
from harness.store.sidecar import read_manifest
from pruners.core.errors import PruneBoardError

LONG = 2000
"""Pages to encode from which on a run begins with its plan: fewer are done before anyone has read it."""


@dataclass(frozen=True)
class DataSetPlan:
    """One data set: how large it is, and how much of it is encoded."""

    name: str
    purpose: str
    here: bool
    pages: int | None
    queries: int | None
    encoded: int = 0
    bytes: int = 0
    """Of what is encoded."""

    @property
    def left(self) -> int:
        return (self.pages or 0) - self.encoded


@dataclass(frozen=True)
class PageCost:
    """What encoding a page takes, and from what that is known."""

    vectors: float | None
    bytes: float | None
    seconds: float | None
    source: str


@dataclass(frozen=True)
class Plan:
    """All that can be known before the work."""

    missing: tuple[str, ...]
    data_sets: tuple[DataSetPlan, ...]
    cost: PageCost
    methods: int
    device: str
    devices: int
    workers: int
    weights: int | None
    """Bytes of the checkpoint, which memory must hold while pages are encoded."""
    memory: int
    """Bytes that are free."""
    disk: int

    @property
    def store_bytes(self) -> float | None:
        """What the pages that are not encoded yet will take."""
        left = sum(data_set.left for data_set in self.data_sets)
        return 0 if not left else None if self.cost.bytes is None else left * self.cost.bytes

    @property
    def seconds(self) -> float | None:
        left = sum(data_set.left for data_set in self.data_sets)
        return 0 if not left else None if self.cost.seconds is None else left * self.cost.seconds

    def problems(self) -> list[str]:
        """What will stop the work."""
        found = []
        if self.store_bytes and self.store_bytes > self.disk:
            found.append(f"the stores need {size(self.store_bytes)}, and {size(self.disk)} of the disk are free")
        if self.weights and self.device == "cpu" and self.weights > self.memory:
            found.append(f"the checkpoint is {size(self.weights)}, and {size(self.memory)} of memory are free")
        return found

    def sentence(self) -> str:
        """What is left to encode, and what it takes."""
        left = sum(data_set.left for data_set in self.data_sets)
        if not left:
            return "all pages are encoded"
        room = "unknown" if self.store_bytes is None else size(self.store_bytes)
        hours = "unknown" if self.seconds is None else duration(self.seconds)
        vectors = "" if self.cost.vectors is None else f" of about {self.cost.vectors:.0f} vectors"
        where = f"{self.device} x {self.devices}" if self.devices > 1 else self.device
        return (
            f"{left:,} pages{vectors} to encode on {where}: time {hours}, store {room} of {size(self.disk)} free "
            f"({self.cost.source})"
        )

    def as_dict(self) -> dict[str, Any]:
        sets = [{**vars(data_set), "left": data_set.left} for data_set in self.data_sets]
        totals = {"store_bytes": self.store_bytes, "seconds": self.seconds, "problems": self.problems()}
        return {**vars(self), "data_sets": sets, "cost": vars(self.cost), **totals}


def plan(
    config: Config,
    methods: Sequence[Method],
    stores: Path,
    workers: int,
    rate: float | None = None,
    loaded: tuple[Benchmark, Backbone] | None = None,
    engine: WorkEngine = PROCESSES,
) -> Plan:
    """Look at everything an evaluation will need. `rate`: pages a second, instead of two pages that are encoded;
    `loaded`: what is loaded already.
    """
    if rate is not None and not 0 < rate < float("inf"):
        raise PruneBoardError(f"a rate is pages a second, more than 0, not {rate:g}")
    backbone, checkpoint = (loaded[1], "") if loaded else find_backbone(config)
    calibration = calibration_of(config, methods)
    wanted = [("evaluate", config.benchmark), *([("calibrate", calibration)] if calibration else [])]
    sets: list[DataSetPlan] = []
    sample: DataSet | None = None
    for purpose, selector in wanted:
        needs = data_needs(selector)
        if loaded and purpose == "evaluate":
            data_sets = loaded[0].data_sets
        elif needs[0].on_disk:
            data_sets = load_benchmark(selector).data_sets
        else:
            sets += [_unread(need, purpose, backbone, stores) for need in needs]
            continue
        rows = [_data_set(data_set, purpose, backbone, stores) for data_set in data_sets]
        sample = sample or next((found for found, row in zip(data_sets, rows, strict=True) if row.left), None)
        sets += rows
    data = [f"data set {row.name}" for row in sets if not row.here]
    device = str(getattr(backbone, "device", "cpu") if backbone else choose_device(config.device))
    return Plan(
        missing=(*([f"checkpoint {checkpoint}"] if checkpoint else []), *dict.fromkeys(data)),
        data_sets=tuple(sets),
        cost=_cost(backbone, sample, rate, workers, any(row.left for row in sets), engine),
        methods=len(methods),
        device=device,
        devices=engine.hands(device.partition(":")[0]) if engine.elsewhere else _devices(device),
        workers=workers,
        weights=_weights(backbone),
        memory=available_memory(),
        disk=shutil.disk_usage(_existing(stores)).free,
    )


def _data_set(data_set: DataSet, purpose: str, backbone: Backbone | None, stores: Path) -> DataSetPlan:
    pages, queries = len(data_set.page_ids), len(data_set.queries)
    folder = store_folder(stores, backbone, data_set) if backbone else None
    if folder is None or not (folder / MANIFEST).is_file():
        return DataSetPlan(data_set.name, purpose, True, pages, queries)
    return DataSetPlan(data_set.name, purpose, True, pages, queries, *_done(read_manifest(folder)))


def _unread(need: DataNeed, purpose: str, backbone: Backbone | None, stores: Path) -> DataSetPlan:
    """One that only mteb can read, which would write: its store is known by name and backbone, not by content."""
    done, ours = (0, 0), made_by(backbone) if backbone else None
    for path in stores.glob(f"*/{MANIFEST}") if backbone else []:
        try:
            found = read_manifest(path.parent)
        except StoreError:  # of another release, or damaged: not this evaluation's
            continue
        identity = dict(found.identity)
        if identity.pop("benchmark", {}).get("name") == need.name and identity == ours:
            done = max(done, _done(found))
    return DataSetPlan(need.name, purpose, need.here, need.pages, need.queries, *done)


def _done(found: Manifest) -> tuple[int, int]:
    """Pages that are encoded, and bytes."""
    pages = sum(len(found.pages_of(index)) for index in found.shards)
    return pages, sum(shard.bytes for shard in found.files)


def _cost(
    backbone: Backbone | None, sample: DataSet | None, rate: float | None, workers: int, left: bool, engine: WorkEngine
) -> PageCost:
    stated = None if rate is None else 1 / rate
    if not left:
        return PageCost(None, None, 0.0, "everything is encoded")
    if backbone is None or sample is None:
        what = "the checkpoint is not here" if backbone is None else "no pages are here that are still to be encoded"
        return PageCost(None, None, stated, "the stated rate" if stated else f"unknown: {what}")
    if isinstance(backbone, StoreBackbone):
        store = backbone.store
        volume = sum(shard.bytes for shard in store.manifest.files) / len(store)
        return PageCost(store.mean_vectors, volume, stated or 0.0, "the imported store")
    read, count = page_reader(backbone, sample), len(sample.page_ids)
    pages: list[EncodedPage] = []
    taken = []
    for index in (count // 3, 2 * count // 3):  # from inside: the first page of a book is its cover
        page, _ = read(index)
        if not pages:
            backbone.encode_pages([page])  # the first call also loads the weights
        start = time.perf_counter()
        pages += backbone.encode_pages([page])
        taken.append(time.perf_counter() - start)
    hands = workers if getattr(backbone, "one_thread", False) else 1
    if engine.elsewhere:
        hands = engine.hands(str(getattr(backbone, "device", "cpu")).partition(":")[0])
    seconds = stated or sum(taken) / len(taken) / hands
    vectors = sum(len(page.vectors) for page in pages) / len(pages)
    source = "two encoded pages, one at a time" + (" and the stated rate" if stated else "")
    return PageCost(vectors, sum(map(_bytes, pages)) / len(pages), seconds, source)


def _bytes(page: EncodedPage) -> int:
    """In a store: vectors and prompt in float16, signals in float32."""
    prompt = 0 if page.prompt is None else page.prompt.numel()
    return 2 * (page.vectors.numel() + prompt) + 4 * sum(signal.numel() for signal in page.signals.values())


def _weights(backbone: Backbone | None) -> int | None:
    checkpoint: Any = getattr(backbone, "checkpoint", None)
    sources = [source for source in (checkpoint, getattr(checkpoint, "base", None)) if source is not None]
    files = [
        file for source in sources if (source.folder / "config.json").is_file() for file in weight_files(source.folder)
    ]
    return sum(os.path.getsize(file) for file in files) if files else None


def _devices(device: str) -> int:
    import torch

    return torch.cuda.device_count() if device.startswith("cuda") else 1


def _existing(folder: Path) -> Path:
    """The folder, or the nearest above it that is there: a plan makes none."""
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())


def head_of_run(
    config: Config,
    methods: Sequence[Method],
    benchmark: Benchmark,
    backbone: Backbone,
    stores: Path,
    workers: int,
    engine: WorkEngine = PROCESSES,
) -> str | None:
    """A line about a run that is long to encode; an error if the disk will not hold it. None if it is short."""
    rows = [_data_set(data_set, "evaluate", backbone, stores) for data_set in benchmark.data_sets]
    if sum(row.left for row in rows) < LONG:
        return None
    found = plan(config, methods, stores, workers, loaded=(benchmark, backbone), engine=engine)
    if problems := found.problems():
        raise PruneBoardError(f"{'; '.join(problems)}. Choose another place with --store; --dry-run shows the plan")
    return found.sentence()


def size(count: float) -> str:
    """Bytes for a person."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def duration(seconds: float) -> str:
    """Time for a person."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
