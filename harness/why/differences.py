"""What changed, query by query, and where: by data set, language and length of the query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from harness.evaluation.methods import FULL
from harness.evaluation.run_folder import HEADLINE
from harness.why.record import Record

BINS = 20
"""Bars of the distribution, from -1 to 1."""


@dataclass(frozen=True)
class Group:
    """Mean NDCG@5 over the queries of a group, by the method and by what it is compared with."""

    kind: str
    name: str
    queries: int
    method: float
    against: float

    @property
    def difference(self) -> float:
        return self.method - self.against


@dataclass(frozen=True)
class Bar:
    """Queries whose difference lies in [low, high) below 0, in (low, high] above; those without one are in no bar."""

    low: float
    high: float
    queries: int


def per_query(record: Record, method: str, against: str, budget: float) -> pd.DataFrame:
    """A row a query: its data set, language, number of words, NDCG@5 by both (means over trials), and the difference.

    Data sets on which one of the two has no result are left out.
    """
    frames = []
    for data_set in record.run.stores:
        slugs = {name: record.slug(name) for name in (method, against)}
        if not all(record.run.files.has(data_set, slug) for slug in slugs.values()):
            continue
        one, other = (_means(record, data_set, name, budget) for name in (method, against))
        frame = pd.DataFrame({"method": one["value"], "against": other["value"], "language": one["language"]})
        texts = record.pages[data_set].data_set.queries if data_set in record.pages else {}
        frame["words"] = [len(texts[query].split()) if query in texts else 0 for query in frame.index]
        frames.append(frame.rename_axis("query").reset_index().assign(data_set=data_set))
    if not frames:
        return pd.DataFrame(columns=["query", "method", "against", "language", "words", "data_set", "difference"])
    every = pd.concat(frames, ignore_index=True)
    return every.assign(difference=every["method"] - every["against"])


def _means(record: Record, data_set: str, method: str, budget: float) -> pd.DataFrame:
    rows = record.run.files.read_result(data_set, record.slug(method)).per_query
    rows = rows[rows["budget"] == (1.0 if method == FULL else budget)]
    return rows.groupby("query", sort=False).agg(value=(HEADLINE, "mean"), language=("language", "first"))


def groups(frame: pd.DataFrame) -> list[Group]:
    """Every data set; languages, if there are two; and queries by length in three parts, if their texts are there."""
    found = [_group("data set", str(name), rows) for name, rows in frame.groupby("data_set", sort=False)]
    if frame["language"].nunique() > 1:
        found += [_group("language", str(name) or "not stated", rows) for name, rows in frame.groupby("language")]
    known = frame[frame["words"] > 0]
    if known["words"].nunique() > 1:
        edges = sorted({int(known["words"].quantile(q)) for q in (1 / 3, 2 / 3)} - {int(known["words"].max())})
        lows, highs = [int(known["words"].min()), *(e + 1 for e in edges)], [*edges, int(known["words"].max())]
        for low, high in zip(lows, highs, strict=True):
            rows = known[known["words"].between(low, high)]
            if len(rows):
                name = f"{low} words" if low == high else f"{low} to {high} words"
                found.append(_group("length of the query", name, rows))
    return found


def _group(kind: str, name: str, rows: pd.DataFrame) -> Group:
    return Group(kind, name, len(rows), float(rows["method"].mean()), float(rows["against"].mean()))


def distribution(values: Sequence[float]) -> list[Bar]:
    """How many queries lost or won how much; queries without a difference are in no bar."""
    step = 2 / BINS
    bars = []
    for i in range(BINS):
        low, high = round(-1 + i * step, 10), round(-1 + (i + 1) * step, 10)
        inside = [v for v in values if (low <= v < high if high <= 0 else low < v <= high) and v]
        bars.append(Bar(low, high, len(inside)))
    return bars


def most_changed(frame: pd.DataFrame, most: int) -> list[dict[str, Any]]:
    """The queries that lost most, then those that won most: three quarters to one, as far as there are so many."""
    # of equal differences one from each data set in turn, or a single data set would fill the page
    turn = frame.groupby(["difference", "data_set"], sort=False).cumcount()
    ordered = frame.assign(turn=turn).sort_values(["difference", "turn", "data_set"], kind="stable")
    lost, won = ordered[ordered["difference"] < 0], ordered[ordered["difference"] > 0]
    won = won.assign(difference=-won["difference"]).sort_values(["difference", "turn", "data_set"], kind="stable")
    of_won = min(len(won), max(most // 4, most - len(lost)))
    rows = pd.concat([lost.head(most - of_won), won.head(of_won)]).drop(columns=["turn", "difference"])
    return [{str(key): value for key, value in row.items()} for row in rows.to_dict("records")]
