"""Score Retention: how much of a gold pair's MaxSim pruning leaves (SAP paper, Eq. "SR").

Per gold (query, page) pair MaxSim(pruned) / MaxSim(full), then the mean over pairs; the ratio of means is kept beside
it. Pairs whose full score is not above zero have no meaningful ratio: they are left out, and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.metrics.ranking import Qrels


@dataclass(frozen=True)
class GoldPairs:
    """Indices of the relevant (query, page) pairs of a data set."""

    queries: np.ndarray
    pages: np.ndarray

    @classmethod
    def of(cls, qrels: Qrels, query_ids: Sequence[str], page_ids: Sequence[str]) -> GoldPairs:
        page_at = {page: i for i, page in enumerate(page_ids)}
        pairs = [
            (q, page_at[page])
            for q, query in enumerate(query_ids)
            for page, grade in qrels.get(query, {}).items()
            if grade > 0
        ]
        queries, pages = zip(*pairs, strict=True) if pairs else ((), ())
        return cls(np.array(queries, np.int64), np.array(pages, np.int64))


@dataclass(frozen=True)
class Retention:
    """Score Retention of one cell, and of each query (the mean over its gold pages; NaN if none can be used)."""

    score_retention: float
    score_retention_micro: float
    left_out: int
    per_query: np.ndarray


def score_retention(pruned: np.ndarray, full: np.ndarray, gold: GoldPairs) -> Retention:
    """Score Retention from two score matrices `[queries, pages]`."""
    after = pruned[gold.queries, gold.pages].astype(np.float64)
    before = full[gold.queries, gold.pages].astype(np.float64)
    usable = before > 0
    ratios = after[usable] / before[usable]
    sums = np.bincount(gold.queries[usable], ratios, minlength=len(full))
    pairs = np.bincount(gold.queries[usable], minlength=len(full))
    return Retention(
        score_retention=float(ratios.mean()) if usable.any() else float("nan"),
        score_retention_micro=float(after[usable].sum() / before[usable].sum()) if usable.any() else float("nan"),
        left_out=int((~usable).sum()),
        per_query=np.divide(sums, pairs, out=np.full(len(full), np.nan), where=pairs > 0),
    )
