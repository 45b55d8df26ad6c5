"""Ways to search a multi-vector index, all exact: numpy and torch here, LanceDB and Qdrant as real engines (extra
`engines`). Each loads an index that was written to disk, and answers one query at a time."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

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


def load_torch(folder: Path) -> Search:
    vectors = torch.from_numpy(np.load(folder / "vectors.npy")).float()
    offsets = np.load(folder / "offsets.npy")
    owner = torch.from_numpy(np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)))

    def search(query: np.ndarray, k: int) -> list[int]:
        similarity = vectors @ torch.from_numpy(query).T
        best = torch.full((len(offsets) - 1, len(query)), -torch.inf)
        best.scatter_reduce_(0, owner[:, None].expand_as(similarity), similarity, "amax")
        return torch.topk(best.sum(1), min(k, len(best))).indices.tolist()

    return search


def write_lancedb(folder: Path, pages: Sequence[np.ndarray]) -> None:
    import lancedb
    import pyarrow as pa

    dim = pages[0].shape[1]
    vector = pa.list_(pa.list_(pa.float32(), dim))
    table = pa.table(
        {"page": pa.array(range(len(pages)), pa.int64()), "vector": pa.array([list(page) for page in pages], vector)}
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


def load_qdrant(folder: Path) -> Search:
    """Qdrant's local mode, in memory: on disk it commits every page by itself, which says nothing about the server."""
    from qdrant_client import QdrantClient, models

    vectors, offsets = np.load(folder / "vectors.npy").astype(np.float32), np.load(folder / "offsets.npy")
    client = QdrantClient(":memory:")
    several = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    size = models.VectorParams(size=vectors.shape[1], distance=models.Distance.DOT, multivector_config=several)
    client.create_collection("pages", vectors_config=size)
    points = [models.PointStruct(id=i, vector=page.tolist()) for i, page in enumerate(np.split(vectors, offsets[1:-1]))]
    client.upsert("pages", points)

    def search(query: np.ndarray, k: int) -> list[int]:
        return [int(point.id) for point in client.query_points("pages", query=query.tolist(), limit=k).points]

    return search


@dataclass(frozen=True)
class Engine:
    """How an index is written and loaded, the package that needs, and whether its files are the engine's own."""

    write: Callable[[Path, Sequence[np.ndarray]], None]
    load: Callable[[Path], Search]
    package: str | None = None
    own_files: bool = True


ENGINES = {
    "numpy, exact": Engine(write_numpy, load_numpy),
    "torch, exact": Engine(write_numpy, load_torch),
    "LanceDB, flat": Engine(write_lancedb, load_lancedb, "lancedb"),
    "Qdrant, local mode": Engine(write_numpy, load_qdrant, "qdrant_client", own_files=False),
}


def available() -> tuple[dict[str, Engine], list[str]]:
    """The engines that are installed, and a sentence for each that is not."""
    here = {n: e for n, e in ENGINES.items() if e.package is None or importlib.util.find_spec(e.package)}
    missing = [
        f"{name} is left out: {engine.package} is not installed (pip install 'pruneboard[engines]')"
        for name, engine in ENGINES.items()
        if name not in here
    ]
    return here, missing
