"""NDCG@{1,5,10,50,100}, recall and MRR of every query, by pytrec_eval (trec_eval's own code, as in MTEB).

Rules: linear gain with grades kept; ties broken by descending page id, scores compared in float32. Of a query only the
top 200 are handed over, and of these nothing that ranks below its last judged page: the figures are the same, many
times faster. A group of ties that a cut would split is kept whole, because its order is decided by ids.
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
        self.page_ids = list(page_ids)
        row_of = {query: row for row, query in enumerate(query_ids)}
        self.rows = np.array([row_of[query] for query in self.query_ids], np.int64)
        """Theirs in a score matrix of all queries."""
        judged = {query: {page: int(grade) for page, grade in qrels[query].items()} for query in self.query_ids}
        self._evaluator = pytrec_eval.RelevanceEvaluator(judged, set(MEASURES))
        page_at = {page: place for place, page in enumerate(page_ids)}
        pairs = [(q, page_at[p]) for q, query in enumerate(self.query_ids) for p in judged[query] if p in page_at]
        self._judged = tuple(np.array(pairs, np.int64).reshape(-1, 2).T)

    def __call__(self, scores: np.ndarray) -> dict[str, np.ndarray]:
        """Every measure for `scores [queries, pages]`: an array with one value for each of `self.query_ids`."""
        scores = np.asarray(scores, np.float32)[self.rows]
        run: dict[str, dict[str, float]] = {query: {} for query in self.query_ids}
        rows, pages = np.nonzero(scores >= self._cuts(scores)[:, None])
        for row, page, score in zip(rows.tolist(), pages.tolist(), scores[rows, pages].tolist(), strict=True):
            run[self.query_ids[row]][self.page_ids[page]] = score
        found = self._evaluator.evaluate(run)
        return {name(m): np.array([found[query][m] for query in self.query_ids]) for m in MEASURES}

    def _cuts(self, scores: np.ndarray) -> np.ndarray:
        """The score of each query below which no page can change a figure; infinite if none of its judged is there."""
        cuts = np.full(len(scores), np.inf, np.float32)
        np.minimum.at(cuts, self._judged[0], scores[self._judged])
        if scores.shape[1] > DEPTH:
            cuts = np.maximum(cuts, np.partition(scores, -DEPTH, axis=1)[:, -DEPTH])
        return cuts


def ranked_ids(scores: np.ndarray, page_ids: Sequence[str], depth: int) -> list[list[str]]:
    """The best pages of each query, in trec_eval's order: score first, then descending id."""
    by_id = np.argsort(np.array(page_ids, dtype=object))[::-1]
    best = np.argsort(-np.asarray(scores, np.float32)[:, by_id], axis=1, kind="stable")[:, :depth]
    return np.array(page_ids, dtype=object)[by_id[best]].tolist()
