"""NDCG@{1,5,10,50,100}, recall and MRR of every query, by pytrec_eval (trec_eval's own code, as in MTEB).

Rules: linear gain with grades kept; ties broken by descending page id, scores compared in float32. Of a query only the
top 200 count; a group of ties that this cut would split is kept whole, because its order is decided by ids.

A query's figures depend on the ranks and grades of its judged pages, and on nothing else. So ranks are counted here
(`ranks.py`), and pytrec_eval is asked once for every way in which the judged pages stand, whatever query, method or
budget it occurs with: the figures are the same, many times faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import pytrec_eval

from harness.metrics.ranks import JudgedPairs, RankCounts, by_descending_id

CUTOFFS = (1, 5, 10, 50, 100)
DEPTH = 200
MOST_KNOWN = 20_000  # standings whose figures are remembered: about 10 MB
TOP = 10
"""Ranked pages kept of each query, budget and trial; what is submitted is checked against them."""
MEASURES = (
    *(f"ndcg_cut_{k}" for k in CUTOFFS),
    *(f"recall_{k}" for k in CUTOFFS),
    "recip_rank",
)
_ASKED = {*(f"{kind}.{','.join(map(str, CUTOFFS))}" for kind in ("ndcg_cut", "recall")), "recip_rank"}
"""The same in few words, which pytrec_eval takes apart every time."""

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
        row_of = {query: row for row, query in enumerate(query_ids)}
        self.rows = np.array([row_of[query] for query in self.query_ids], np.int64)
        """Theirs in a score matrix of all queries."""
        self.by_id = by_descending_id(page_ids)
        """All pages by descending id, which is their place."""
        self._grades = sorted({int(grade) for query in self.query_ids for grade in qrels[query].values()})
        wanted = {page for query in self.query_ids for page in qrels[query]}
        page_at = {page: at for at, page in enumerate(page_ids) if page in wanted}
        pairs = [
            (q, slot, page_at.get(page, -1), self._grades.index(int(grade)), int(grade))
            for q, query in enumerate(self.query_ids)
            for slot, (page, grade) in enumerate(qrels[query].items())
        ]
        self._queries, self._slots, pages, self._levels, grades = np.array(pairs, np.int64).reshape(-1, 5).T.copy()
        place = np.empty(len(page_ids), np.int32)
        place[self.by_id] = np.arange(len(page_ids), dtype=np.int32)
        self.judged = JudgedPairs(self.rows[self._queries], pages, self.rows, place)
        self.gold = np.flatnonzero(grades > 0)
        """Which of the judged pairs are relevant ones."""
        self._figures: dict[bytes, list[float]] = {}

    def __call__(self, scores: np.ndarray) -> dict[str, np.ndarray]:
        """Every measure for `scores [..., queries, pages]`: arrays `[..., queries]`, of `self.query_ids` only."""
        counts, _ = self.count(scores)
        found = self.measure(counts.ranks(self.judged, DEPTH))
        return {measure: values.reshape(*scores.shape[:-2], -1) for measure, values in found.items()}

    def best(self, scores: np.ndarray, depth: int = TOP) -> np.ndarray:
        """The best pages `[..., queries, depth]` of the same queries, all pages if there are fewer."""
        found = self.by_id[self.count(scores, depth)[0].best]
        return found.reshape(*scores.shape[:-2], *found.shape[1:])

    def count(self, scores: np.ndarray, depth: int = TOP) -> tuple[RankCounts, np.ndarray]:
        """Ranks counted from whole tables of scores, and the scores `[cells, pairs]` of the judged pages."""
        tables = np.asarray(scores, np.float32).reshape(-1, *scores.shape[-2:])
        known = np.where(self.judged.pages < 0, np.float32(np.nan), tables[:, self.judged.rows, self.judged.pages])
        counts = RankCounts.none(self.judged, len(tables), depth)
        counts.count(self.judged, known, np.ascontiguousarray(tables.transpose(2, 0, 1)), np.arange(len(self.by_id)))
        return counts, known

    def measure(self, ranks: np.ndarray) -> dict[str, np.ndarray]:
        """Every measure `[cells, queries]` from the ranks `[cells, pairs]` of the judged pages."""
        standings = self._standings(ranks)
        if len(self._figures) > MOST_KNOWN:
            self._figures.clear()
        if new := [standing for standing in dict.fromkeys(standings) if standing not in self._figures]:
            self._figures.update(zip(new, self._measure(new), strict=True))
        figures = np.array([self._figures[standing] for standing in standings]).reshape(-1, len(MEASURES))
        shape = (len(ranks), len(self.query_ids))
        return {name(m): np.ascontiguousarray(figures[:, i]).reshape(shape) for i, m in enumerate(MEASURES)}

    def _standings(self, ranks: np.ndarray) -> list[bytes]:
        """For each cell and query the rank and grade of every judged page (rank 0: not found), in rising order."""
        width = 1 + self._slots.max(initial=0)
        codes = np.full((len(ranks), len(self.query_ids), width), -1, np.int32)
        codes[:, self._queries, self._slots] = ranks * len(self._grades) + self._levels
        codes.sort(axis=-1)
        return codes.view(f"V{codes.itemsize * width}").ravel().tolist()

    def _measure(self, standings: Sequence[bytes]) -> list[list[float]]:
        """trec_eval's figures. A page that is not judged counts by its place alone: pages are named by their rank."""
        qrels: dict[str, dict[str, int]] = {}
        run: dict[str, dict[str, float]] = {}
        for query, codes in enumerate(
            np.frombuffer(b"".join(standings), np.int32).reshape(len(standings), -1).tolist()
        ):
            judged = [divmod(code, len(self._grades)) for code in codes if code >= 0]
            names = [f"{rank}" if rank else f"not found {i}" for i, (rank, _) in enumerate(judged)]
            qrels[f"{query}"] = {page: self._grades[level] for page, (_, level) in zip(names, judged, strict=True)}
            run[f"{query}"] = _ranking(judged[-1][0])
        found = pytrec_eval.RelevanceEvaluator(qrels, _ASKED).evaluate(run)
        return [[found[query][measure] for measure in MEASURES] for query in run]


@lru_cache(maxsize=DEPTH)  # ties reach further down, in any length
def _ranking(pages: int) -> dict[str, float]:
    """A query's pages down to the last that is judged."""
    return {f"{rank}": -float(rank) for rank in range(1, pages + 1)}
