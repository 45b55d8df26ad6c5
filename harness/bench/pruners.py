"""What pruning a page costs: every method at the standard budgets, and the peers that do the same work.

CPU time of one thread, so that a busy machine does not blur the figures. Peers run one budget at a time, as they are
used; where they do, the methods that serve all budgets from one tree have that advantage by right.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence

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
        label, peer = PEERS[method.name]
        theirs = _time(peer, pages)
        row |= {"peer": label, "peer_ms": round(theirs, 2), "ratio": round(theirs / ours, 1)}
    return row


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


PEERS: dict[str, tuple[str, Callable[[Page], None]]] = {
    "kmeans": ("sklearn KMeans", _sklearn_kmeans),
    "agglomerative": ("sklearn average linkage", _sklearn_average),
    "token_pooling": ("colpali-engine pooler", _engine_pooler),
}


def _near_square(n: int) -> tuple[int, int]:
    rows = next(r for r in range(math.isqrt(n), 0, -1) if n % r == 0)
    return rows, n // rows
