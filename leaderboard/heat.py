"""The heat map: retention of every method on every data set, in steps of colour and as numbers."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from leaderboard.lines import Line
from leaderboard.views import View
from leaderboard.words import fixed

STEPS = (50.0, 70.0, 80.0, 90.0, 95.0, 99.0, 100.05)
"""Steps get finer towards 100, where methods differ; the last begins above what rounds to 100.0."""
MOST = 100
"""Rows; a map of a thousand is no map."""
CELLS = 4500
"""Of all budgets together: what a page has room for."""


@dataclass(frozen=True)
class HeatRow:
    line: Line
    cells: tuple[tuple[str, int | None], ...]
    """What is printed, and the step."""

    @property
    def common(self) -> int | None:
        """The step of most cells, which a page says once a row; the last is set apart by more than its colour."""
        steps = Counter(step for _, step in self.cells if step is not None and step < len(STEPS))
        return steps.most_common(1)[0][0] if steps else None


def step(value: float | None) -> int | None:
    return None if value is None else bisect_right(STEPS, value)


def heat_map(view: View, budget: float) -> list[HeatRow]:
    """One row a method at a budget, best first. A missing data set stays empty."""
    rows = []
    most = min(MOST, max(10, CELLS // max(1, len(view.budgets) * len(view.data_sets))))
    for line, row in [pair for pair in view.listed(budget) if pair[1].data_sets][:most]:
        values = [row.retention_on(name) for name in view.data_sets]
        rows.append(HeatRow(line, tuple((fixed(value), step(value)) for value in values)))
    return rows


def legend() -> list[str]:
    """What each step means."""
    edges = ["0", *(f"{edge:g}" for edge in STEPS[:-1]), "100"]
    return [f"{a}–{b}" for a, b in pairwise(edges)] + ["above 100"]


def columns(view: View) -> list[tuple[str, str]]:
    """Data sets by full and by short name: MTEB's prefix and ending, and the benchmark's own name, say nothing here."""
    return [(name, short_name(name)) for name in view.data_sets]


def short_name(data_set: str) -> str:
    short = data_set.rpartition("/")[2]
    for start in ("Vidore2", "Vidore"):
        if short.startswith(start) and len(short) > len(start):
            short = short[len(start) :]
            break
    return short.removesuffix("Retrieval").replace("SyntheticDocQA", "SynDocQA") or data_set
