"""Calibration data: one data set, disjoint from what is evaluated, and the pages and pairs drawn from it."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping

from harness.benchmarks.folder import Benchmark
from harness.benchmarks.suite import load_suite
from harness.metrics.retention import GoldPairs
from harness.store.reader import Store
from pruners.core.errors import PruneBoardError


def calibration_task(name: str) -> Benchmark:
    """The one data set of a calibration benchmark."""
    tasks = load_suite(name).tasks
    if len(tasks) != 1:
        raise PruneBoardError(
            f"--calibration {name} has {len(tasks)} data sets ({', '.join(task.name for task in tasks)}); name one"
        )
    return tasks[0]


def gold_pairs(task: Benchmark, store: Store) -> list[tuple[int, int]]:
    """(page, query) index pairs that belong together."""
    gold = GoldPairs.of(task.qrels, store.query_ids, store.page_ids)
    return list(zip(gold.pages.tolist(), gold.queries.tolist(), strict=True))


def draw(items: Collection, count: int, seed: int) -> list:
    """`count` of `items` without replacement, or all if there are fewer; in their own order."""
    pool = list(items)
    chosen = random.Random(seed).sample(range(len(pool)), min(count, len(pool)))
    return [pool[place] for place in sorted(chosen)]


def check_disjoint(task: str, images: Collection[str], stores: Mapping[str, Store]) -> None:
    """No evaluated page may have been learned from, whatever its id: pages are compared by what was read of them."""
    known = set(images) - {""}  # imported vectors have no images
    for name, store in stores.items():
        shared = [page for page, image in zip(store.page_ids, store.image_hashes, strict=True) if image in known]
        if shared:
            raise PruneBoardError(
                f"calibration set {task} and {name} share {len(shared)} pages, the first is {shared[0]!r}; "
                "what is learned from evaluated pages would flatter a method"
            )
