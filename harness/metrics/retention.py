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
    """Score Retention of cells `[...]`, and of their queries `[..., queries]`: the mean over a query's gold pages, NaN
    if none can be used.
    """

    score_retention: np.ndarray
    score_retention_micro: np.ndarray
    left_out: int
    per_query: np.ndarray


def score_retention(pruned: np.ndarray, full: np.ndarray, gold: GoldPairs) -> Retention:
    """Score Retention from the score matrices of cells `[..., queries, pages]` and of the full model."""
    usable = full[gold.queries, gold.pages] > 0
    queries, pages = gold.queries[usable], gold.pages[usable]
    before = full[queries, pages].astype(np.float64)
    cells, n = pruned.shape[:-2], len(full)
    # `take` lays the pairs of a cell side by side, so that a sum does not depend on how many cells there are
    after = np.take(pruned.reshape(*cells, -1), queries * full.shape[1] + pages, axis=-1).astype(np.float64)
    ratios = after / before
    sums = np.array([np.bincount(queries, each, minlength=n) for each in ratios.reshape(-1, len(queries))])
    pairs = np.bincount(queries, minlength=n)
    nothing = np.full(cells, np.nan)
    return Retention(
        score_retention=ratios.mean(-1) if usable.any() else nothing,
        score_retention_micro=after.sum(-1) / before.sum() if usable.any() else nothing,
        left_out=int((~usable).sum()),
        per_query=np.divide(sums, pairs, out=np.full(sums.shape, np.nan), where=pairs > 0).reshape(*cells, n),
    )
