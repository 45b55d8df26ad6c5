"""The plan of an evaluation before any work: what is here, what must be fetched, what it will take.

Pages, queries and what is encoded already are counted; what a page takes is in `page_cost.py`, how a long run begins
with its plan in `head.py`. Nothing is written (but hashes of large corpora, into the user's cache), no hub is asked.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.backbones.base import choose_device
from harness.backbones.batching import available_memory
from harness.backbones.checkpoint import weight_files
from harness.backbones.contract import TEXT_TOKENS, Backbone
from harness.backbones.store import StoreBackbone
from harness.benchmarks.benchmark import Benchmark, load_benchmark
from harness.benchmarks.data_set import DataSet
from harness.encode import made_by, store_folder
from harness.engine.engine import PROCESSES, WorkEngine
from harness.evaluation.calibration import lacks_calibration
from harness.evaluation.config import Config
from harness.evaluation.methods import Method
from harness.evaluation.methods import unfit as unfit_methods
from harness.evaluation.page_cost import PageCost, page_cost
from harness.evaluation.presence import DataNeed, calibration_of, data_needs, find_backbone
from harness.store.format import MANIFEST, Manifest, StoreError
from harness.store.part import WHOLE, Part
from harness.store.sidecar import read_manifest
from harness.store.writer import SHARD_PAGES
from pruners.core.errors import PruneBoardError


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
    corpus: str = ""
    """What its pages are, by their hash: data sets of the same pages share them. Nothing if it is not known."""

    @property
    def left(self) -> int:
        return (self.pages or 0) - self.encoded


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
    refused: str = ""
    """Why the methods will not even be begun with; nothing if they will."""
    unfit: tuple[str, ...] = ()
    """Why some of the methods that were named will have no results."""

    @property
    def left(self) -> int:
        return pages_left(self.data_sets)

    @property
    def store_bytes(self) -> float | None:
        """What the pages that are not encoded yet will take."""
        return 0 if not self.left else None if self.cost.bytes is None else self.left * self.cost.bytes

    @property
    def seconds(self) -> float | None:
        return 0 if not self.left else None if self.cost.seconds is None else self.left * self.cost.seconds

    def problems(self) -> list[str]:
        """What will stop the work."""
        found = [self.refused] if self.refused else []
        if self.store_bytes and self.store_bytes > self.disk:
            found.append(f"the stores need {size(self.store_bytes)}, and {size(self.disk)} of the disk are free")
        if self.weights and self.device == "cpu" and self.weights > self.memory:
            found.append(f"the checkpoint is {size(self.weights)}, and {size(self.memory)} of memory are free")
        return found

    def sentence(self) -> str:
        """What is left to encode, and what it takes."""
        if not self.left:
            return "all pages are encoded"
        room = "unknown" if self.store_bytes is None else size(self.store_bytes)
        hours = "unknown" if self.seconds is None else duration(self.seconds)
        vectors = "" if self.cost.vectors is None else f" of about {self.cost.vectors:.0f} vectors"
        where = f"{self.device} x {self.devices}" if self.devices > 1 else self.device
        return (
            f"{self.left:,} pages{vectors} to encode on {where}: time {hours}, store {room} of {size(self.disk)} free "
            f"({self.cost.source})"
        )

    def as_dict(self) -> dict[str, Any]:
        sets = [{**vars(data_set), "left": data_set.left} for data_set in self.data_sets]
        totals = {
            "left": self.left,
            "store_bytes": self.store_bytes,
            "seconds": self.seconds,
            "problems": self.problems(),
        }
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
    """Look at everything an evaluation will need. `rate`: pages a second of a device, instead of two pages that are
    encoded; `loaded`: what is loaded already.
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
        rows = [data_set_plan(data_set, purpose, backbone, stores) for data_set in data_sets]
        sample = sample or next((found for found, row in zip(data_sets, rows, strict=True) if row.left), None)
        sets += rows
    data = [f"data set {row.name}" for row in sets if not row.here]
    reasons = unfit_methods(methods, backbone.card) if backbone else {}
    fit = [method for method in methods if method.text not in reasons]
    needs_pages = lacks_calibration(config, backbone, stores, fit, calibration, config.benchmark)
    return make_plan(
        sets,
        backbone,
        sample,
        stores,
        workers,
        engine,
        rate=rate,
        methods=len(fit),
        missing=(*([f"checkpoint {checkpoint}"] if checkpoint else []), *dict.fromkeys(data)),
        device=config.device,
        refused=needs_pages if fit else "; ".join(reasons.values()),
        unfit=tuple(reasons.values()) if fit and config.pruners else (),
    )


def make_plan(
    rows: Sequence[DataSetPlan],
    backbone: Backbone | None,
    sample: DataSet | None,
    stores: Path,
    workers: int,
    engine: WorkEngine,
    *,
    rate: float | None = None,
    vector_dtype: str = "float16",
    methods: int = 0,
    missing: tuple[str, ...] = (),
    device: str | None = None,
    refused: str = "",
    unfit: tuple[str, ...] = (),
) -> Plan:
    """The plan of encoding what is left of data sets; `sample` is one of them that has pages to try."""
    done = PageCost(None, None, 0.0, "everything is encoded")
    kind = str(getattr(backbone, "device", "cpu") if backbone else choose_device(device))
    devices = engine.hands(kind.partition(":")[0])
    tried = backbone, sample, rate, workers, engine, vector_dtype, devices
    return Plan(
        missing=missing,
        data_sets=tuple(rows),
        cost=page_cost(*tried) if pages_left(rows) else done,
        methods=methods,
        device=kind,
        devices=devices,
        workers=workers,
        weights=_weights(backbone),
        memory=available_memory(),
        disk=shutil.disk_usage(_existing(stores)).free,
        refused=refused,
        unfit=unfit,
    )


def pages_left(rows: Iterable[DataSetPlan]) -> int:
    """To be encoded. Pages that several data sets share are encoded for one of them and linked by the others."""
    fewest: dict[str, int] = {}
    for row in rows:
        pages = row.corpus or f"{row.purpose} {row.name}"
        fewest[pages] = min(row.left, fewest.get(pages, row.left))
    return sum(fewest.values())


def data_set_plan(
    data_set: DataSet,
    purpose: str,
    backbone: Backbone | None,
    stores: Path,
    vector_dtype: str = "float16",
    part: Part = WHOLE,
) -> DataSetPlan:
    """One data set that can be read, or a part of its store."""
    name, queries, corpus = data_set.name, len(data_set.queries), _corpus(data_set, backbone)
    folder = store_folder(stores, backbone, data_set, vector_dtype) if backbone else None
    if folder is None or not (folder / MANIFEST).is_file():
        ours = part.shards(-(-len(data_set.page_ids) // SHARD_PAGES))
        pages = len(data_set.page_ids[ours.start * SHARD_PAGES : ours.stop * SHARD_PAGES])
        return DataSetPlan(name, purpose, True, pages, queries, corpus=corpus)
    found = read_manifest(folder)
    ours = part.shards(found.shard_count)
    pages = sum(len(found.pages_of(index)) for index in ours)
    return DataSetPlan(name, purpose, True, pages, queries, *_done(found, ours), corpus=corpus)


def _corpus(data_set: DataSet, backbone: Backbone | None) -> str:
    """What stores of the same pages have in common. Imported vectors are looked up for each data set."""
    if isinstance(backbone, StoreBackbone):
        return ""
    parts = ("corpus", *(["texts"] if backbone and backbone.card.kind == TEXT_TOKENS else []))
    return " ".join(data_set.content.get(part, "") for part in parts)


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
            done = max(done, _done(found, range(found.shard_count)))
    return DataSetPlan(need.name, purpose, need.here, need.pages, need.queries, *done)


def _done(found: Manifest, shards: range) -> tuple[int, int]:
    """Pages of these shards that are encoded, and bytes."""
    pages = sum(len(found.pages_of(index)) for index in found.shards if index in shards)
    return pages, sum(shard.bytes for shard in found.files)


def _weights(backbone: Backbone | None) -> int | None:
    checkpoint: Any = getattr(backbone, "checkpoint", None)
    sources = [source for source in (checkpoint, getattr(checkpoint, "base", None)) if source is not None]
    files = [
        file for source in sources if (source.folder / "config.json").is_file() for file in weight_files(source.folder)
    ]
    return sum(os.path.getsize(file) for file in files) if files else None


def _existing(folder: Path) -> Path:
    """The folder, or the nearest above it that is there: a plan makes none."""
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())


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
