"""Result pages: one method on one benchmark and backbone: its cost, how to run it, who measured it, where it loses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leaderboard.answers import rival
from leaderboard.bootstrap import MeasuredScores
from leaderboard.heat import short_name, step
from leaderboard.lines import Line
from leaderboard.methods import command, load_words
from leaderboard.rows import FULL
from leaderboard.views import View
from leaderboard.words import file_name

LOST = 8
"""Queries shown of a data set: those that lost most at the default budget."""


@dataclass(frozen=True)
class LostQuery:
    query: str
    language: str
    full: float
    left: tuple[float | None, ...]
    """NDCG@5 by budget."""


@dataclass(frozen=True)
class DataSetResult:
    """A method on one data set: retention and its step of colour by budget, and the queries most lost."""

    name: str
    short: str
    anchor: str
    retention: tuple[tuple[float | None, int | None], ...]
    queries: int
    worse: int
    better: int
    lost: tuple[LostQuery, ...]


@dataclass(frozen=True)
class ResultPage:
    view: View
    line: Line
    data_sets: tuple[DataSetResult, ...]
    rival: Line | None
    command: str | None
    python: str | None

    @property
    def codecs(self) -> list[Line]:
        """The same method stored in other ways."""
        return [line for line in self.view.lines if line.base == self.line.base and line.codec != self.line.codec]

    @property
    def path(self) -> str:
        return result_path(self.view, self.line)


def result_path(view: View, line: Line) -> str:
    return f"result/{view.slug}/{file_name(line.label.replace(' | ', '--'))}.html"


def result_page(view: View, line: Line) -> ResultPage:
    text = command(line.entry, sorted(line.rows))
    shown = tuple(_data_set(view, line, i, name) for i, name in enumerate(view.data_sets))
    return ResultPage(view, line, shown, rival(view, line), text, load_words(line.entry) if text else None)


def _data_set(view: View, line: Line, place: int, name: str) -> DataSetResult:
    values = [row.retention_on(name) for row in line.rows.values()]
    queries, worse, better, lost = most_lost(line.measured, name, list(line.rows), view.default_budget)
    steps = tuple((value, step(value)) for value in values)
    return DataSetResult(name, short_name(name), f"set-{place + 1}", steps, queries, worse, better, lost)


def most_lost(
    scores: MeasuredScores | None, data_set: str, budgets: Sequence[float], at: float
) -> tuple[int, int, int, tuple[LostQuery, ...]]:
    """Queries of a data set, how many are worse and better at a budget than unpruned, and those most lost there."""
    if scores is None or at not in scores.budgets:
        return 0, 0, 0, ()
    found, count, worse, better = [], 0, 0, 0
    for s, (name, language, queries) in enumerate(scores.strata):
        if name != data_set:
            continue
        unpruned = scores.per_query(s, FULL)
        change = scores.per_query(s, at) - unpruned
        count, worse, better = count + len(change), worse + int((change < 0).sum()), better + int((change > 0).sum())
        pruned = [scores.per_query(s, b) if b in scores.budgets else None for b in budgets]
        for q in np.argsort(change, kind="stable")[:LOST]:
            if change[q] < 0:
                left = tuple(None if values is None else float(values[q]) for values in pruned)
                found.append((float(change[q]), LostQuery(queries[q], language, float(unpruned[q]), left)))
    found.sort(key=lambda pair: (pair[0], pair[1].query))
    return count, worse, better, tuple(query for _, query in found[:LOST])
