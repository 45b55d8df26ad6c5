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
        wanted = {page for query in query_ids for page in qrels.get(query, {})}
        page_at = {page: i for i, page in enumerate(page_ids) if page in wanted}
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


def score_retention(after: np.ndarray, before: np.ndarray, queries: np.ndarray, n: int) -> Retention:
    """Score Retention from the scores of gold pairs, `after [..., pairs]` pruning and `before [pairs]`.

    `queries` are the pairs' queries, of `n`.
    """
    usable = before > 0
    queries, before = queries[usable], before[usable].astype(np.float64)
    cells = after.shape[:-1]
    # the pairs of a cell lie side by side, so that a sum does not depend on how many cells there are
    after = np.ascontiguousarray(after[..., usable]).astype(np.float64)
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
