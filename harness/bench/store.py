"""`harness bench store`: how the cost of writing and opening a store grows with its pages.

Pages are tiny, so that what is seen is the store's own work; the same number of bytes is also written as plain files,
each synced to disk once, which is the least that any store of such shards could cost. CPU seconds are compared from
size to size, because a disk that others use too is never twice as slow for twice the work.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from harness.memory import peak_mb
from harness.progress import Progress
from harness.store.encoded_page import EncodedPage
from harness.store.format import MANIFEST, Manifest, Shard, read_manifest_file, shard_file, write_manifest
from harness.store.reader import Store
from harness.store.writer import StoreWriter

COLUMNS = {
    "pages": "pages",
    "cpu": "CPU s",
    "growth": "x",
    "seconds": "s",
    "plain": "plain files, s",
    "open": "open, CPU s",
    "manifest_mb": "manifest MB",
    "open_mb": "open, peak MB",
}


def measure(folder: Path, sizes: Sequence[int], progress: Progress) -> list[dict[str, Any]]:
    """A row a size; `growth` is the CPU time in relation to the size before."""
    rows: list[dict[str, Any]] = []
    for pages in sizes:
        where = folder / f"store-{pages}"
        shutil.rmtree(where, ignore_errors=True)
        try:
            row = _write(where, pages, progress)
        finally:
            shutil.rmtree(where, ignore_errors=True)
        row["growth"] = round(row["cpu"] / rows[-1]["cpu"], 2) if rows else None
        rows.append(row)
    return rows


def open_large(folder: Path, pages: int) -> dict[str, Any]:
    """Write and read the manifest of a store of so many pages, without its shards."""
    folder.mkdir(parents=True, exist_ok=True)
    image = "xxh3-" + "0" * 32
    ids = tuple(f"document_{i // 20}_page_{i % 20}" for i in range(pages))
    manifest = Manifest({"bench": pages}, {}, {}, "float16", 32, ids, dim=128)
    shards = {
        i: Shard(shard_file(i), 250_000, image, 960, "\n".join([image] * len(manifest.pages_of(i))))
        for i in range(manifest.shard_count)
    }
    try:
        start = time.process_time()
        write_manifest(folder, replace(manifest, shards=shards, queries=Shard("", 1, image, 1, ids=("q",))))
        written = time.process_time() - start
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            taken, memory = pool.submit(_opened, folder).result()
        size = (folder / MANIFEST).stat().st_size
    finally:
        (folder / MANIFEST).unlink(missing_ok=True)
    return {
        "pages": pages,
        "cpu": round(written, 2),
        "open": round(taken, 2),
        "manifest_mb": round(size / 1e6, 1),
        "open_mb": round(memory),
    }


def _opened(folder: Path) -> tuple[float, float]:
    """CPU seconds of reading a manifest, and by how many MB that raises the peak memory of a process of its own."""
    start, before = time.process_time(), peak_mb()
    assert read_manifest_file(folder).complete
    return time.process_time() - start, peak_mb() - before


def _write(folder: Path, pages: int, progress: Progress) -> dict[str, Any]:
    page, ids = EncodedPage(torch.ones(4, 16)), [f"page {i}" for i in range(pages)]
    start, cpu = time.perf_counter(), time.process_time()
    with (
        progress(f"{pages} pages", total=pages, done=0) as advance,
        StoreWriter(folder, {"bench": pages}, ids) as writer,
    ):
        for page_id in writer.wanted():
            writer.add(page_id, page)
            advance(1)
        writer.add_queries(["q"], [torch.ones(2, 16)])
    seconds, used = time.perf_counter() - start, time.process_time() - cpu
    cpu = time.process_time()
    store = Store(folder)
    opened = time.process_time() - cpu
    return {
        "pages": pages,
        "cpu": round(used, 2),
        "seconds": round(seconds, 2),
        "plain": round(_plain(folder / "plain", [shard.bytes for shard in store.manifest.files]), 2),
        "open": round(opened, 3),
        "manifest_mb": round((folder / MANIFEST).stat().st_size / 1e6, 1),
    }


def _plain(folder: Path, sizes: Sequence[int]) -> float:
    folder.mkdir()
    start = time.perf_counter()
    for i, size in enumerate(sizes):
        with (folder / str(i)).open("wb") as file:
            file.write(b"x" * size)
            file.flush()
            os.fsync(file.fileno())
    return time.perf_counter() - start
