"""A benchmark's store, encoded wherever an engine works: here, or in parts by workers that load the backbone once each.

A worker elsewhere is sent names alone (of backbone, benchmark, folder) and a part of the store; it must come to the
very same store, or it is refused. Parts are whole shards, so that whoever dies loses at most the shard it worked on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from filelock import Timeout

from harness.backbones import registry
from harness.backbones.contract import Backbone
from harness.backbones.recipe import BackboneRecipe, recipe_of
from harness.backbones.store import StoreBackbone
from harness.benchmarks.benchmark import Benchmark, load_benchmark
from harness.benchmarks.data_set import DataSet
from harness.encode import encode, encode_part, identity_of, store_folder
from harness.engine.engine import WorkEngine, workers_here
from harness.progress import Progress, quiet
from harness.store.format import MANIFEST, StoreError
from harness.store.part import Part
from harness.store.reader import Store
from harness.store.sidecar import read_manifest, read_manifest_file
from harness.store.writer import SHARD_PAGES
from pruners.core.errors import PruneBoardError

PARTS = 16
"""Of each worker: enough that none waits long for another at the end, few enough that reading a long manifest for each
does not count."""
PATIENCE = 60.0
"""Seconds that a part may still be held by a worker whose node just died."""


def encode_on(
    engine: WorkEngine,
    backbone: Backbone,
    data_set: DataSet,
    root: Path,
    *,
    workers: int | None = None,
    progress: Progress = quiet,
    say: Callable[[str], None] = lambda text: None,
    **options: Any,
) -> Store:
    """The finished store of a data set. The options are those of `encode_part`."""
    if engine.elsewhere and not isinstance(backbone, StoreBackbone) and not options.get("repair"):
        _encode_elsewhere(engine, backbone, data_set, root, progress, options)
    # what is left (of an engine elsewhere nothing) is done here, and what was made is checked
    here = None if workers is None else workers_here(engine, workers)
    return encode(backbone, data_set, root, workers=here, progress=progress, say=say, **options)


def _encode_elsewhere(
    engine: WorkEngine, backbone: Backbone, data_set: DataSet, root: Path, progress: Progress, options: dict[str, Any]
) -> None:
    form = options.get("vector_dtype", "float16"), options.get("shard_pages", SHARD_PAGES)
    folder = store_folder(root, backbone, data_set, *form)
    if (folder / MANIFEST).is_file() and read_manifest(folder).complete:
        return
    recipe = recipe_of(backbone)
    if recipe is None or not data_set.selector:
        what = f"the benchmark {data_set.name}" if recipe else f"the backbone {backbone.card.name}"
        raise PruneBoardError(
            f"{what} was made by hand in this process, so no other node can load it: name it (--backbone, "
            "--benchmark), or encode it here first with --engine processes"
        )
    device = device_elsewhere(engine, backbone)
    count = min(-(-len(data_set.page_ids) // form[1]), PARTS * engine.hands(device))
    whole = (data_set.selector, data_set.name, root.absolute(), identity_of(backbone, data_set), options)
    orders = [PartOrder(*whole, Part(number, count)) for number in range(1, count + 1)]
    with progress(f"{data_set.name}: encode on the cluster", total=len(data_set.page_ids), done=0) as advance:
        for pages in engine.stations(Encoder(recipe), orders, device):
            advance(pages)


def device_elsewhere(engine: WorkEngine, backbone: Backbone) -> str:
    """The kind of device that workers encode on: this process's, because precision and so the store depend on it."""
    device = str(getattr(backbone, "device", "cpu")).partition(":")[0]
    recipe = recipe_of(backbone)
    chosen = recipe is not None and recipe.options.device is not None
    if engine.gpus and device == "cpu" and hasattr(backbone, "device") and not chosen:
        raise PruneBoardError(
            f"the cluster has {engine.gpus:g} GPUs and this machine has none, so {backbone.card.name} would be encoded "
            "on cores: start the command on a node with a GPU, or say that cores are meant with --device cpu"
        )
    return device


@dataclass(frozen=True)
class PartOrder:
    """A part of a store to be encoded, as a worker is told."""

    benchmark: str
    data_set: str
    root: Path
    identity: dict[str, Any]
    """Of the store, as it is where the work was begun."""
    options: dict[str, Any]
    part: Part


@dataclass(frozen=True)
class Encoder:
    """What a worker is made of. Called, it loads the backbone; what comes back encodes part after part."""

    backbone: BackboneRecipe

    def __call__(self) -> Callable[[PartOrder], int]:
        backbone = registry.load_again(self.backbone)
        return lambda order: _encode(backbone, order)


def _encode(backbone: Backbone, order: PartOrder) -> int:
    """Encode a part; how many pages it has."""
    data_sets = {each.name: each for each in _benchmark(order.benchmark).data_sets}
    if order.data_set not in data_sets:
        raise StoreError(
            f"the benchmark {order.benchmark} has no data set {order.data_set} here, only {', '.join(data_sets)}. "
            "Every node must see the same checkpoint, benchmark and files"
        )
    data_set = data_sets[order.data_set]
    if wrong := _differing(order.identity, identity_of(backbone, data_set)):
        raise StoreError(
            f"what would be encoded is not the same: {'; '.join(wrong)}. Every node must see the same checkpoint, "
            "benchmark and files"
        )
    until = time.monotonic() + PATIENCE
    while True:
        try:
            folder = encode_part(backbone, data_set, order.root, order.part, workers=1, **order.options)
            break
        except StoreError as error:
            if not isinstance(error.__cause__, Timeout) or time.monotonic() > until:
                raise
            time.sleep(0.5)  # for a lock
    manifest = read_manifest_file(folder)  # what others have made of the store need not be read
    return sum(len(manifest.pages_of(index)) for index in order.part.shards(manifest.shard_count))


@lru_cache(maxsize=1)  # parts of one data set come one after another
def _benchmark(selector: str) -> Benchmark:
    return load_benchmark(selector)


def _differing(expected: Any, found: Any, names: Sequence[str] = ()) -> list[str]:
    """The innermost settings in which two identities differ, by name."""
    if isinstance(expected, dict) and isinstance(found, dict):
        keys = dict.fromkeys([*expected, *found])
        return [text for key in keys for text in _differing(expected.get(key), found.get(key), (*names, str(key)))]
    return [] if expected == found else [f"{'.'.join(names)} is {found!r} here and {expected!r} where it was begun"]
