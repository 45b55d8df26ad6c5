"""What pruning a page costs: every method at the standard budgets, and the peers that do the same work.

CPU time of one thread, so that a busy machine does not blur the figures. A peer that makes one number of clusters is
called for each budget, as it is used; one that grows a tree grows it once, as ours do. The strongest peer is shown.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec

import numpy as np
import torch
from rich.progress import track
from threadpoolctl import threadpool_limits

from harness.console import people
from pruners import STANDARD, Page, Pruner, Window, catalogue, keep_count, prune, resolve, synthetic_page
from pruners.core.apply import calibrate

COLUMNS = {"pruner": "pruner", "ms": "ms a page", "peer": "peer", "peer_ms": "its ms", "ratio": "peer / ours"}
NEED_A_PART = {"adaptive": "adaptive(sap)", "merge": "merge(sap)"}


def measure(n: int, dim: int, repeats: int, only: Sequence[str] | None = None) -> list[dict]:
    """One row a method."""
    rows, cols = _near_square(n)
    pages = [synthetic_page(rows, cols, dim=dim, layers=18, seed=seed) for seed in range(repeats)]
    names = only or [NEED_A_PART.get(name, name) for name in catalogue()]
    result = []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            for method in track(resolve(names), "timing", console=people, transient=True):
                result.append(_row(calibrate(method.with_window(Window(11, 15)), pages, STANDARD), pages))
    finally:
        torch.set_num_threads(threads)
    return result


def _row(method: Pruner, pages: Sequence[Page]) -> dict:
    queries = [pages[0].vectors[:20]] if method.declaration.diagnostic else None
    ours = _time(lambda page: prune(method, page, STANDARD, queries=queries), pages)
    row: dict = {"pruner": str(method), "ms": round(ours, 2)}
    if method.name in PEERS:
        theirs = {label: _time(peer, pages) for label, peer in PEERS[method.name].items() if _installed(label)}
        label = min(theirs, key=theirs.__getitem__)
        row |= {"peer": label, "peer_ms": round(theirs[label], 2), "ratio": round(theirs[label] / ours, 1)}
    return row


def _installed(label: str) -> bool:
    """Of the peers, only fastcluster is not a dependency of this project: `pip install pruneboard[dev]` brings it."""
    return not label.startswith("fastcluster") or find_spec("fastcluster") is not None


def _time(work: Callable[[Page], object], pages: Sequence[Page]) -> float:
    work(pages[0])  # compile and warm up
    taken = []
    for page in pages:
        start = time.process_time()
        work(page)
        taken.append(time.process_time() - start)
    return 1000 * statistics.median(taken)


def _sklearn_kmeans(page: Page) -> None:
    from sklearn.cluster import KMeans

    for budget in STANDARD:
        KMeans(keep_count(budget, len(page)), n_init=1, max_iter=100, random_state=0).fit(page.vectors.numpy())


def _sklearn_average(page: Page) -> None:
    from sklearn.cluster import AgglomerativeClustering

    for budget in STANDARD:
        k = keep_count(budget, len(page))
        AgglomerativeClustering(k, metric="cosine", linkage="average").fit(page.vectors.numpy())


def _engine_pooler(page: Page) -> None:
    import harness.compat  # noqa: F401

    from colpali_engine.compression.token_pooling import HierarchicalTokenPooler

    for budget in STANDARD:
        HierarchicalTokenPooler().pool_embeddings([page.vectors], pool_factor=round(1 / budget))


def _fastcluster_average(page: Page) -> None:
    import fastcluster

    tree = fastcluster.linkage(page.vectors.double().numpy(), "average", metric="cosine")
    _cut(tree, len(page))


def _scipy_average(page: Page) -> None:
    from scipy.cluster.hierarchy import linkage

    _cut(linkage(page.vectors.double().numpy(), "average", metric="cosine"), len(page))


def _fastcluster_ward(page: Page) -> None:
    """What the engine's pooler asks of scipy, of the quickest library there is: one tree for all budgets."""
    import fastcluster

    similarity = (page.vectors @ page.vectors.T).double().numpy()
    _cut(fastcluster.linkage(1 - similarity, "ward"), len(page))


def _cut(tree: np.ndarray, n: int) -> None:
    from scipy.cluster.hierarchy import fcluster

    for budget in STANDARD:
        fcluster(tree, keep_count(budget, n), "maxclust")


PEERS: dict[str, dict[str, Callable[[Page], None]]] = {
    "kmeans": {"sklearn KMeans": _sklearn_kmeans},
    "agglomerative": {
        "sklearn average linkage": _sklearn_average,
        "scipy average linkage": _scipy_average,
        "fastcluster average linkage": _fastcluster_average,
    },
    "token_pooling": {"colpali-engine pooler": _engine_pooler, "fastcluster Ward": _fastcluster_ward},
}


def _near_square(n: int) -> tuple[int, int]:
    rows = next(r for r in range(math.isqrt(n), 0, -1) if n % r == 0)
    return rows, n // rows
