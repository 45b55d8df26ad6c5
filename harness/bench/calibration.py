"""What SR-guided window selection costs once pages are in a store: random vectors and in-degrees of any size.

The peer is the paper's algorithm a layer at a time, as one would write it in torch, on the same pages.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import torch

from harness.calibration.window import GAMMA, layer_curve
from harness.progress import Progress
from harness.store.encoded_page import EncodedPage
from harness.store.reader import Store
from harness.store.writer import StoreWriter
from pruners import keep_count, unit
from pruners.core.errors import PruneBoardError

COLUMNS = {"way": "way", "seconds": "s", "cpu_seconds": "CPU s"}
DIM, TOKENS = 128, 20


def measure(folder: Path, pairs: int, layers: int, vectors: int, progress: Progress) -> list[dict]:
    """One row for us and one for the peer; both must give the same curve."""
    store = _store(folder / f"calibration-{pairs}-{layers}-{vectors}", pairs, layers, vectors, progress)
    chosen = [(i, i) for i in range(pairs)]
    layer_curve(store, chosen[:1])  # compiles the kernel
    rows, curves = [], []
    for way, curve in (("one sweep a page", layer_curve), ("a layer at a time, torch", _layer_by_layer)):
        with progress(way, total=pairs, done=0) as advance:
            wall, cpu = time.perf_counter(), time.process_time()
            curves.append(curve(store, chosen, GAMMA, advance)[0])
            spent = time.perf_counter() - wall, time.process_time() - cpu
        rows.append({"way": way, "seconds": round(spent[0], 2), "cpu_seconds": round(spent[1], 2)})
    if not np.allclose(curves[0], curves[1], atol=1e-5):
        raise PruneBoardError("the two ways give different curves; one of them is wrong")
    return rows


def _layer_by_layer(store: Store, pairs: list, gamma: float, advance: object) -> tuple[np.ndarray, int]:
    total = torch.zeros(store.signals["indegree"])
    for page_index, query_index in pairs:
        page, query = store.page(page_index), store.query(query_index)
        full = (query @ page.vectors.T).amax(1).sum()
        for layer, scores in enumerate(page.signals["indegree"]):
            kept = page.vectors[scores.topk(keep_count(gamma, len(page))).indices]
            total[layer] += (query @ kept.T).amax(1).sum() / full
        advance(1)  # type: ignore[operator]
    return (total / len(pairs)).numpy(), 0


def _store(where: Path, pairs: int, layers: int, vectors: int, progress: Progress) -> Store:
    identity = {"synthetic": "calibration", "shape": [pairs, layers, vectors, DIM]}
    with StoreWriter(where, identity, [f"p{i}" for i in range(pairs)]) as writer:
        wanted = writer.wanted()
        with progress("write the store", total=len(wanted), done=0) as advance:
            for page in wanted:
                generator = torch.Generator().manual_seed(int(page[1:]))
                drawn = unit(torch.randn(vectors, DIM, generator=generator))
                writer.add(
                    page, EncodedPage(drawn, None, {"indegree": torch.rand(layers, vectors, generator=generator)})
                )
                advance(1)
        if writer.manifest.queries is None:
            generator = torch.Generator().manual_seed(pairs)
            queries = [unit(torch.randn(TOKENS, DIM, generator=generator)) for _ in range(pairs)]
            writer.add_queries([f"q{i}" for i in range(pairs)], queries)
    return Store(where)
