"""Figures computed again from what is stored: NDCG from rankings, Score Retention from queries.

NDCG follows trec_eval: linear gain, discount 1 / log2(rank + 1), the ideal order of all judged pages below it. It is
written here a second time on purpose: it shares no code with what measured the figures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.metrics.ranking import TOP
from harness.submissions.pinned import DISCOUNTS, Judgements
from harness.submissions.rows import PerQuery

RANKED = (1, 5, 10)
"""Cutoffs that ten stored pages suffice for."""
DEEPER = (50, 100)
BEHIND = np.concatenate([[0], DISCOUNTS[TOP:].cumsum()])
"""What so many pages behind the stored ones add at most, for a grade of 1."""


@dataclass(frozen=True)
class Rankings:
    """The rows of one data set, as indices into its pinned queries and pages; -1 for what is not known there."""

    rows: np.ndarray
    """Where in the table they are."""
    query: np.ndarray
    top: np.ndarray
    """`[rows, 10]`, -1 also where a ranking is shorter."""


def rankings(table: PerQuery, name: str, judged: Judgements) -> Rankings:
    code = table.data_set.names.index(name)
    rows = np.flatnonzero(table.data_set.codes == code)
    page_at = np.array([judged.pages.get(page, -1) for page in table.top.names] + [-1], np.int32)  # -1 reaches the last
    query_at = np.array([judged.queries.get(query, -1) for query in table.query.names])
    return Rankings(rows, query_at[table.query.codes[rows]], page_at[table.top.codes[rows]])


def gains(found: Rankings, judged: Judgements) -> np.ndarray:
    """Grades of the ranked pages `[rows, 10]`; 0 for pages that are not judged, or not known."""
    return judged.grades[found.query[:, None], found.top]  # -1 reaches the column of no page


def ndcg(gained: np.ndarray, found: Rankings, judged: Judgements) -> dict[int, np.ndarray]:
    """NDCG at the cutoffs that stored rankings reach, one value a row."""
    reached = (gained * DISCOUNTS[:TOP]).cumsum(1)
    return {k: reached[:, k - 1] / judged.ideal(k)[found.query] for k in RANKED}


def deeper_bounds(gained: np.ndarray, found: Rankings, judged: Judgements) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """What NDCG at 50 and 100 can be, given the first ten pages: all else irrelevant, or all that is left follows."""
    reached = (gained * DISCOUNTS[:TOP]).sum(1)
    left = np.maximum(judged.relevant[found.query] - (gained > 0).sum(1), 0)
    bounds = {}
    for cutoff in DEEPER:
        ideal = judged.ideal(cutoff)[found.query]
        best = reached + judged.highest * BEHIND[np.minimum(left, cutoff - TOP)]
        bounds[cutoff] = reached / ideal, np.minimum(best / ideal, 1)
    return bounds


def pair_mean(per_query: np.ndarray, pairs: np.ndarray) -> float:
    """Score Retention over gold pairs from its means by query; exact where no pair was left out."""
    return float(np.dot(per_query, pairs) / pairs.sum())
