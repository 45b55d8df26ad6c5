"""Ways to search a multi-vector index, all exact: numpy and torch here, LanceDB and Qdrant as real engines (extra
`engines`). Each loads an index that was written to disk, and answers one query at a time.

Qdrant is its own engine in this process (`qdrant-edge-py`), not the stand-in in Python that its client has.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

NUMPY, TORCH = "numpy, exact", "torch, exact"
TOGETHER = 16  # pages handed to Qdrant at a time
NEVER = 2**40  # KB of vectors from which on Qdrant would make a graph

Search = Callable[[np.ndarray, int], list[int]]
"""Query vectors `[tokens, d]` and k -> the k best pages, best first."""


def write_numpy(folder: Path, pages: Sequence[np.ndarray]) -> None:
    """All vectors in a row as float16, and where pages begin."""
    np.save(folder / "vectors.npy", np.concatenate(pages).astype(np.float16))
    np.save(folder / "offsets.npy", np.cumsum([0, *map(len, pages)]))


def load_numpy(folder: Path) -> Search:
    vectors, offsets = np.load(folder / "vectors.npy").astype(np.float32), np.load(folder / "offsets.npy")

    def search(query: np.ndarray, k: int) -> list[int]:
        best = np.maximum.reduceat(vectors @ query.T, offsets[:-1], axis=0)
        return np.argsort(-best.sum(1), kind="stable")[:k].tolist()

    return search


def load_torch(folder: Path, device: torch.device) -> Search:
    vectors = torch.from_numpy(np.load(folder / "vectors.npy")).to(device).float()
    offsets = np.load(folder / "offsets.npy")
    owner = torch.from_numpy(np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))).to(device)
    if device.type == "cuda":
        torch.cuda.synchronize(device)  # copies go on after the call that asked for them: loading ends when they do

    def search(query: np.ndarray, k: int) -> list[int]:
        similarity = vectors @ torch.from_numpy(query).to(device).T
        best = torch.full((len(offsets) - 1, len(query)), -torch.inf, device=device)
        best.scatter_reduce_(0, owner[:, None].expand_as(similarity), similarity, "amax")
        return torch.topk(best.sum(1), min(k, len(best))).indices.tolist()

    return search


def write_lancedb(folder: Path, pages: Sequence[np.ndarray]) -> None:
    import lancedb
    import pyarrow as pa

    dim = pages[0].shape[1]
    vector = pa.list_(pa.list_(pa.float32(), dim))
    table = pa.table(
        {
            "page": pa.array(range(len(pages)), pa.int64()),
            "vector": pa.array([list(page.astype(np.float32)) for page in pages], vector),
        }
    )
    lancedb.connect(folder).create_table("pages", table)


def load_lancedb(folder: Path) -> Search:
    import lancedb

    table: Any = lancedb.connect(folder).open_table("pages")

    def search(query: np.ndarray, k: int) -> list[int]:
        # without an index this is a flat, exact search; unit vectors make cosine and dot product the same
        return (
            table.search(query)
            .distance_type("cosine")
            .limit(k)
            .select(["page", "_distance"])
            .to_arrow()["page"]
            .to_pylist()
        )

    return search


def write_qdrant(folder: Path, pages: Sequence[np.ndarray]) -> None:
    """Float16 vectors on disk. Without a graph, since the search is to be exact, and without a log of updates."""
    import qdrant_edge as qdrant

    several = qdrant.MultiVectorConfig(qdrant.MultiVectorComparator.MaxSim)
    vector = qdrant.EdgeVectorParams(
        size=pages[0].shape[1],
        distance=qdrant.Distance.Dot,
        multivector_config=several,
        datatype=qdrant.VectorStorageDatatype.Float16,
        on_disk=True,
    )
    no_graph = qdrant.EdgeOptimizersConfig(indexing_threshold=NEVER)
    shard = qdrant.EdgeShard.create(
        str(folder), qdrant.EdgeConfig(vectors={"page": vector}, optimizers=no_graph, wal_enabled=False)
    )
    for first in range(0, len(pages), TOGETHER):
        batch = enumerate(pages[first : first + TOGETHER], first)
        points = [qdrant.Point(i, {"page": page.astype(np.float32).tolist()}) for i, page in batch]
        shard.update(qdrant.UpdateOperation.upsert_points(points))
    shard.optimize()
    shard.flush()
    shard.close()


def load_qdrant(folder: Path) -> Search:
    import qdrant_edge as qdrant

    shard = qdrant.EdgeShard.load(str(folder))
    exact = qdrant.SearchParams(exact=True)

    def search(query: np.ndarray, k: int) -> list[int]:
        nearest = qdrant.Query.Nearest(query.tolist(), using="page")
        return [int(point.id) for point in shard.query(qdrant.QueryRequest(limit=k, query=nearest, params=exact))]

    return search


def disk_bytes(folder: Path) -> int:
    """What files really take: engines reserve space ahead in files with holes, which say they are larger than that."""
    found = [path.stat() for path in folder.rglob("*") if path.is_file()]
    return sum(min(file.st_size, 512 * getattr(file, "st_blocks", file.st_size)) for file in found)


@dataclass(frozen=True)
class Engine:
    """How an index is written and loaded, where it answers, and the package it needs."""

    write: Callable[[Path, Sequence[np.ndarray]], None]
    load: Callable[[Path], Search]
    device: str = "cpu"
    package: str | None = None


def engines(device: torch.device) -> dict[str, Engine]:
    """Every engine. Torch searches on the device; numpy and the engines have the processor only."""
    return {
        NUMPY: Engine(write_numpy, load_numpy),
        TORCH: Engine(write_numpy, partial(load_torch, device=device), str(device)),
        "LanceDB, flat": Engine(write_lancedb, load_lancedb, package="lancedb"),
        "Qdrant, exact": Engine(write_qdrant, load_qdrant, package="qdrant_edge"),
    }


def available(device: torch.device) -> tuple[dict[str, Engine], list[str]]:
    """The engines that are installed, and a sentence for each that is not."""
    every = engines(device)
    here = {n: e for n, e in every.items() if e.package is None or importlib.util.find_spec(e.package)}
    missing = [
        f"{name} is left out: {engine.package} is not installed (pip install 'pruneboard[engines]')"
        for name, engine in every.items()
        if name not in here
    ]
    return here, missing
