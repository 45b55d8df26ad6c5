"""NDCG@{1,5,10,50,100}, recall and MRR of every query, by pytrec_eval (trec_eval's own code, as in MTEB).

Rules: linear gain with grades kept; ties broken by descending page id, scores compared in float32. Only the top 200 of
a query are handed over, which gives the same figures twenty times faster; a group of ties that the cut would split is
kept whole, because its order is decided by ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytrec_eval

CUTOFFS = (1, 5, 10, 50, 100)
DEPTH = 200
TOP = 10
"""Ranked pages kept of each query, budget and trial; what is submitted is checked against them."""
MEASURES = (
    *(f"ndcg_cut_{k}" for k in CUTOFFS),
    *(f"recall_{k}" for k in CUTOFFS),
    "recip_rank",
)

Qrels = Mapping[str, Mapping[str, int]]


def name(measure: str) -> str:
    """trec_eval's name as ours: ndcg@5, recall@5, mrr."""
    if measure == "recip_rank":
        return "mrr"
    kind, _, k = measure.rpartition("_")
    return f"{kind.removesuffix('_cut')}@{k}"


class Evaluator:
    """Ranking measures of one data set, for as many score matrices as wanted."""

    def __init__(self, qrels: Qrels, query_ids: Sequence[str], page_ids: Sequence[str]) -> None:
        self.query_ids = [query for query in query_ids if any(grade > 0 for grade in qrels.get(query, {}).values())]
        """Queries that have a relevant page. Others cannot be scored, and are left out."""
        self.page_ids = np.array(page_ids, dtype=object)
        self._rows = [list(query_ids).index(query) for query in self.query_ids]
        judged = {query: {page: int(grade) for page, grade in qrels[query].items()} for query in self.query_ids}
        self._evaluator = pytrec_eval.RelevanceEvaluator(judged, set(MEASURES))

    def __call__(self, scores: np.ndarray) -> dict[str, np.ndarray]:
        """Every measure for `scores [queries, pages]`: an array with one value for each of `self.query_ids`."""
        run = {query: self._top(scores[row]) for query, row in zip(self.query_ids, self._rows, strict=True)}
        found = self._evaluator.evaluate(run)
        return {name(m): np.array([found[query][m] for query in self.query_ids]) for m in MEASURES}

    def _top(self, scores: np.ndarray) -> dict[str, float]:
        scores = np.asarray(scores, np.float32)
        kept = np.arange(len(scores))
        if len(scores) > DEPTH:
            cut = np.partition(scores, len(scores) - DEPTH)[len(scores) - DEPTH]
            kept = np.flatnonzero(scores >= cut)
        return dict(zip(self.page_ids[kept].tolist(), scores[kept].tolist(), strict=True))


def ranked_ids(scores: np.ndarray, page_ids: Sequence[str], depth: int) -> list[list[str]]:
    """The best pages of each query, in trec_eval's order: score first, then descending id."""
    by_id = np.argsort(np.array(page_ids, dtype=object))[::-1]
    best = np.argsort(-np.asarray(scores, np.float32)[:, by_id], axis=1, kind="stable")[:, :depth]
    return [[page_ids[by_id[i]] for i in row] for row in best]
