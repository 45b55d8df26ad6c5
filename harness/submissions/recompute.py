"""Figures computed again from what is stored: NDCG from rankings, Score Retention from queries, budgets from pages.

NDCG follows trec_eval: linear gain, discount 1 / log2(rank + 1), the ideal order of all judged pages below it. It is
written here a second time on purpose: it shares no code with what measured the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from harness.submissions.pinned import Judged

RANKED = (1, 5, 10)
"""Cutoffs that ten stored pages suffice for."""
DEEPER = (50, 100)
TOP = 10


@dataclass(frozen=True)
class Rankings:
    """The rows of one data set, as indices into its pinned queries and pages; -1 for what is not known there."""

    rows: np.ndarray
    """Where in the table they are."""
    query: np.ndarray
    top: np.ndarray
    """`[rows, 10]`, -1 where a ranking is shorter or a page is not known."""
    length: np.ndarray
    unknown: np.ndarray
    """Pages of each ranking that the corpus has not."""


def rankings(table: pa.Table, judged: Mapping[str, Judged]) -> dict[str, Rankings]:
    """Rankings by data set, for the data sets that are pinned."""
    data_set, query = _codes(table, "data_set"), _codes(table, "query")
    lists = table["top_10"].combine_chunks()
    lengths = np.diff(lists.offsets.to_numpy())
    pages = lists.flatten()
    flat = pages.indices.to_numpy(zero_copy_only=False)
    slot = np.arange(len(flat)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    matrix = np.full((len(lists), TOP), -1, np.int64)
    fits = slot < TOP
    matrix[np.repeat(np.arange(len(lists)), lengths)[fits], slot[fits]] = flat[fits]
    names = pages.dictionary.to_pylist()
    found = {}
    for code, name in enumerate(data_set.names):
        if name in judged:
            rows = np.flatnonzero(data_set.values == code)
            page_at = np.array([judged[name].pages.get(page, -1) for page in names] + [-1])
            query_at = np.array([judged[name].queries.get(q, -1) for q in query.names])
            top = page_at[matrix[rows]]
            given = np.minimum(lengths[rows], TOP)
            unknown = given - (top >= 0).sum(1)
            found[name] = Rankings(rows, query_at[query.values[rows]], top, lengths[rows], unknown)
    return found


def ndcg(found: Rankings, judged: Judged) -> dict[int, np.ndarray]:
    """NDCG at the cutoffs that stored rankings reach, one value a row."""
    gains = _gains(found, judged) / np.log2(np.arange(2, TOP + 2))
    reached = gains.cumsum(1)
    return {k: reached[:, k - 1] / judged.ideal(k)[found.query] for k in RANKED}


def deeper_bounds(found: Rankings, judged: Judged, cutoff: int) -> tuple[np.ndarray, np.ndarray]:
    """What NDCG at 50 or 100 can be, given the first ten pages: all else irrelevant, or all that is left follows."""
    discounts = 1 / np.log2(np.arange(2, cutoff + 2))
    gains = _gains(found, judged)
    reached = (gains * discounts[:TOP]).sum(1)
    ideal = judged.ideal(cutoff)[found.query]
    left = np.maximum(judged.relevant[found.query] - (gains > 0).sum(1), 0)
    most = max((max(row.values(), default=0) for row in judged.qrels.values()), default=0)
    behind = np.concatenate([[0], discounts[TOP:].cumsum()])
    best = reached + most * behind[np.minimum(left, cutoff - TOP)]
    return reached / ideal, np.minimum(best / ideal, 1)


def pair_mean(per_query: np.ndarray, pairs: np.ndarray) -> float:
    """Score Retention over gold pairs from its means by query; exact where no pair was left out."""
    return float(np.dot(per_query, pairs) / pairs.sum())


def _gains(found: Rankings, judged: Judged) -> np.ndarray:
    keys, grades = judged.grades
    wanted = found.query[:, None] * len(judged.page_ids) + found.top
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where((found.top >= 0) & (keys[at] == wanted), grades[at], 0.0)


@dataclass(frozen=True)
class Codes:
    """A text column as numbers, and what they stand for."""

    values: np.ndarray
    names: list[str]


def _codes(table: pa.Table, name: str) -> Codes:
    column = table[name].combine_chunks()
    return Codes(column.indices.to_numpy(zero_copy_only=False), column.dictionary.to_pylist())
