"""Calibration data: one data set, disjoint from what is evaluated, and the pages and pairs drawn from it."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping

from harness.benchmarks.benchmark import load_benchmark
from harness.benchmarks.data_set import DataSet
from harness.benchmarks.embedded import CALIBRATION
from harness.metrics.retention import GoldPairs
from harness.store.reader import Store
from pruners.core.errors import PruneBoardError


def calibration_data_set(name: str) -> DataSet:
    """The one data set of a calibration benchmark."""
    data_sets = load_benchmark(name).data_sets
    if len(data_sets) != 1:
        raise PruneBoardError(
            f"--calibration {name} has {len(data_sets)} data sets ({', '.join(d.name for d in data_sets)}); name one"
        )
    return data_sets[0]


def own_calibration_set(backbone: str) -> str:
    """The benchmark that a backbone is calibrated on if none is named."""
    if backbone == "nano":
        return CALIBRATION
    raise PruneBoardError(
        f"name the pages to calibrate {backbone} on with --benchmark: colpali-train, as in the SAP paper, or a folder "
        "in ViDoRe's layout. Every later evaluation of this backbone will use the window that comes out"
    )


def gold_pairs(data_set: DataSet, store: Store) -> list[tuple[int, int]]:
    """(page, query) index pairs that belong together."""
    gold = GoldPairs.of(data_set.qrels, store.query_ids, store.page_ids)
    return list(zip(gold.pages.tolist(), gold.queries.tolist(), strict=True))


def draw(items: Collection, count: int, seed: int) -> list:
    """`count` of `items` without replacement, or all if there are fewer; in their own order."""
    pool = list(items)
    chosen = random.Random(seed).sample(range(len(pool)), min(count, len(pool)))
    return [pool[place] for place in sorted(chosen)]


def check_disjoint(data_set: str, images: Collection[str], stores: Mapping[str, Store]) -> None:
    """No evaluated page may have been learned from, whatever its id: pages are compared by what was read of them."""
    known = set(images) - {""}  # imported vectors have no images
    for name, store in stores.items():
        shared = [page for page, image in zip(store.page_ids, store.image_hashes, strict=True) if image in known]
        if shared:
            raise PruneBoardError(
                f"calibration set {data_set} and {name} share {len(shared)} pages, the first is {shared[0]!r}; "
                "what is learned from evaluated pages would flatter a method"
            )
