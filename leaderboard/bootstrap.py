"""Intervals, tied ranks and differences of the measured rows of a view. The statistics are all `uncertainty`'s.

What is done here is only to hand it the right arrays. Submissions of one run share a full model and are resampled
together. Those of another run have a full model of their own and are resampled by another call with the same seed and
the same queries, which draws the same resamples: so all of them are paired, and replicates can stand side by side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from harness.metrics.results_table import CellKey, ResultsTable
from harness.metrics.uncertainty import RESAMPLES, Comparison, Interval, compare_tables, tie_groups
from harness.submissions.report import CheckedSubmission
from leaderboard.headline import weights
from leaderboard.rows import FULL

WORK = 60_000_000
"""Numbers drawn and figures resampled in all, so that a view of a thousand submissions takes seconds, not minutes."""
FEWEST = 1000

Strata = tuple[tuple[str, str, tuple[str, ...]], ...]
"""(data set, language, queries) in a fixed order: only submissions with the same are compared."""


@dataclass(frozen=True)
class MeasuredScores:
    """Per-query NDCG@5 of a submission, at the budgets where it has the queries of its full model."""

    table: ResultsTable
    strata: Strata
    budgets: tuple[float, ...]
    """Without the full model's."""

    @cached_property
    def full(self) -> bytes:
        """Tells runs apart."""
        return b"".join(self.per_query(s, FULL).tobytes() for s in range(len(self.strata)))

    def per_query(self, stratum: int, budget: float) -> np.ndarray:
        data_set, language, _ = self.strata[stratum]
        return self.table.per_query(CellKey(data_set, language, budget))


@dataclass(frozen=True)
class Resampled:
    """The cells of a view: `places[submission, budget]` is the cell, submissions counted as they were given."""

    places: dict[tuple[int, float], int]
    comparison: Comparison
    resamples: int

    def interval(self, submission: int, budget: float) -> Interval | None:
        cell = self.places.get((submission, budget))
        return None if cell is None else self.comparison.retention_interval(cell)

    def ranks(self, submissions: Sequence[int], budget: float) -> dict[int, int]:
        """Tied ranks of these submissions at a budget."""
        found = {s: self.places[s, budget] for s in submissions if (s, budget) in self.places}
        return dict(zip(found, tie_groups(self.comparison, list(found.values())), strict=True))

    def difference(self, a: int, b: int, budget: float) -> Interval | None:
        """Retention of a minus that of b."""
        first, second = self.places.get((a, budget)), self.places.get((b, budget))
        return None if first is None or second is None else self.comparison.difference(first, second)

    def areas(self, budgets: tuple[float, ...]) -> Resampled:
        """The headline as a comparison of its own, of the submissions that have all `budgets`; its budget is FULL."""
        names = sorted({s for s, _ in self.places if all((s, b) in self.places for b in budgets)})
        at = np.array([[self.places[s, b] for b in budgets] for s in names], int).reshape(len(names), len(budgets))
        share, whole = weights(budgets), self.comparison
        area = Comparison(
            whole.ndcg[at] @ share,
            whole.ndcg_replicates[:, at] @ share,
            whole.retention[at] @ share,
            whole.retention_replicates[:, at] @ share,
        )
        return Resampled({(s, FULL): i for i, s in enumerate(names)}, area, self.resamples)


def measured(entry: CheckedSubmission, budgets: Sequence[float]) -> MeasuredScores | None:
    """Per-query figures of a submission; none if it has none, or not for the full model."""
    if entry.scores is None:
        return None
    strata = _strata(entry.scores, FULL)
    same = [budget for budget in budgets if strata and budget != FULL and _strata(entry.scores, budget) == strata]
    return MeasuredScores(entry.scores, strata, tuple(same)) if strata else None


def _strata(table: ResultsTable, budget: float) -> Strata:
    cells = sorted(cell for cell in table.queries if cell.budget == budget)
    return tuple((cell.data_set, cell.language, table.queries[cell]) for cell in cells)


def resample(entries: Sequence[MeasuredScores | None], names: Sequence[str], most: int = RESAMPLES) -> Resampled | None:
    """Bootstrap every cell over the data sets `names`, of the submissions that have the queries most of them have."""
    known = {i: entry for i, entry in enumerate(entries) if entry is not None}
    counted = Counter(entry.strata for entry in known.values()).most_common(1)
    if not counted or not set(names) <= {data_set for data_set, _, _ in counted[0][0]}:
        return None
    common = counted[0][0]
    runs: dict[bytes, list[int]] = {}
    for i, entry in known.items():
        if entry.strata == common:
            runs.setdefault(entry.full, []).append(i)
    cells = [(i, budget) for members in runs.values() for i in members for budget in known[i].budgets]
    queries = sum(len(found) for data_set, _, found in common if data_set in names)
    resamples = max(FEWEST, min(most, WORK // (queries * len(runs) + len(cells) * len(names))))
    comparisons = [
        compare_tables(
            [(known[i].table, budget) for i in members for budget in known[i].budgets],
            known[members[0]].table,
            names,
            resamples=resamples,
        )
        for members in runs.values()
    ]
    return Resampled({cell: at for at, cell in enumerate(cells)}, _side_by_side(comparisons), resamples)


def _side_by_side(runs: Sequence[Comparison]) -> Comparison:
    if len(runs) == 1:  # almost always: replicates are large, and need no copy
        return runs[0]
    return Comparison(
        np.concatenate([run.ndcg for run in runs]),
        np.concatenate([run.ndcg_replicates for run in runs], axis=1),
        np.concatenate([run.retention for run in runs]),
        np.concatenate([run.retention_replicates for run in runs], axis=1),
    )
