"""What encoding a page takes: from two pages that are encoded to see, from an imported store, or from a stated rate."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass

from harness.backbones.contract import Backbone, EncodedPage
from harness.backbones.store import StoreBackbone
from harness.benchmarks.data_set import DataSet
from harness.encode import page_reader
from harness.encode_on import device_elsewhere
from harness.engine.engine import WorkEngine
from harness.workers import one_thread


@dataclass(frozen=True)
class PageCost:
    """What encoding a page takes, and from what that is known."""

    vectors: float | None
    bytes: float | None
    seconds: float | None
    source: str


def page_cost(
    backbone: Backbone | None,
    sample: DataSet | None,
    rate: float | None,
    workers: int,
    engine: WorkEngine,
    vector_dtype: str = "float16",
    devices: int = 1,
) -> PageCost:
    """Of the pages of `sample`. `rate`: pages a second of one device, instead of the time of two pages."""
    stated = None if rate is None else 1 / rate / devices
    if backbone is None or sample is None:
        what = "the checkpoint is not here" if backbone is None else "no pages are here that are still to be encoded"
        return PageCost(None, None, stated, "the stated rate" if stated else f"unknown: {what}")
    if isinstance(backbone, StoreBackbone):
        store = backbone.store
        if store.page_ids == sample.page_ids:
            return PageCost(store.mean_vectors, 0.0, stated or 0.0, "the imported store, whose files are linked")
        volume = sum(shard.bytes for shard in store.manifest.files) / len(store)
        return PageCost(store.mean_vectors, volume, stated or 0.0, "the imported store")
    small = getattr(backbone, "one_thread", False)
    hands = workers if small else 1
    if engine.elsewhere:
        hands = engine.hands(device_elsewhere(engine, backbone))
    # workers on a cluster have one thread each, and so have processes that share the pages of a small backbone
    with one_thread() if small or engine.elsewhere else nullcontext():
        pages, seconds = _encoded(backbone, sample)
    vectors = sum(len(page.vectors) for page in pages) / len(pages)
    volume = sum(_bytes(page, vector_dtype) for page in pages) / len(pages)
    source = "two encoded pages, one at a time" + (" and the stated rate" if stated else "")
    return PageCost(vectors, volume, stated or seconds / hands, source)


def _encoded(backbone: Backbone, sample: DataSet) -> tuple[list[EncodedPage], float]:
    """Two pages, and the seconds of one."""
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
    return pages, sum(taken) / len(taken)


def _bytes(page: EncodedPage, vector_dtype: str) -> int:
    """In a store: vectors and prompt as asked for, signals in float32."""
    prompt = 0 if page.prompt is None else page.prompt.numel()
    signals = sum(signal.numel() for signal in page.signals.values())
    return (4 if vector_dtype == "float32" else 2) * (page.vectors.numel() + prompt) + 4 * signals
