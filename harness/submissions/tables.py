"""The two tables of a measured submission: one row a query, and the vectors kept of each page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from harness import parquet
from harness.metrics.ranking import CUTOFFS, TOP
from harness.metrics.results_table import HEADLINE, CellKey, ResultsTable

if TYPE_CHECKING:
    import pandas as pd

PER_QUERY = {
    "data_set": "text",
    "language": "text",
    "budget": "number",
    "trial": "integer",
    "query": "text",
    **{f"ndcg@{k}": "number" for k in CUTOFFS},
    "score_retention": "float32",
    f"top_{TOP}": "texts",
}
"""NDCG of every query with a relevant page, its Score Retention (missing where it has no ratio), its ten best pages."""

KEPT = {"data_set": "text", "budget": "number", "trial": "integer", "kept": "integers"}
"""One row a data set, budget and trial; `kept` has a number for each page, in the order of `pages.parquet`."""


@dataclass(frozen=True)
class Texts:
    """A text column: numbers, and what they stand for."""

    codes: np.ndarray
    names: list[str]

    @classmethod
    def of(cls, column: pa.DictionaryArray) -> Texts:
        return cls(column.indices.to_numpy(zero_copy_only=False), column.dictionary.to_pylist())

    def __getitem__(self, row: int) -> str:
        return self.names[self.codes[row]]


@dataclass(frozen=True)
class PerQuery:
    """The table of queries as arrays with one value a row; a thousand of them are read in seconds."""

    data_set: Texts
    language: Texts
    query: Texts
    budget: np.ndarray
    trial: np.ndarray
    ndcg: dict[int, np.ndarray]
    score_retention: np.ndarray
    top: Texts
    """`codes [rows, 10]` of the ranked pages, -1 after the last."""
    length: np.ndarray
    """Pages in each ranking."""


def scores_of(frame: pd.DataFrame) -> ResultsTable:
    """From the rows of a table that is not checked, such as that of a run of one's own."""
    found = {}
    for key, rows in frame.groupby(["data_set", "language", "budget"]):
        means = rows.groupby("query", sort=True)[HEADLINE].mean()
        found[CellKey(*key)] = tuple(means.index), means.to_numpy()
    return ResultsTable.of_means(found)


def per_query_path(path: Path) -> Path:
    return path.with_suffix(".parquet")


def kept_path(path: Path) -> Path:
    return path.with_suffix(".kept.parquet")


def read_per_query(path: Path) -> PerQuery:
    table = parquet.read(per_query_path(path), PER_QUERY, optional=("score_retention",))
    columns = {name: table[name].combine_chunks() for name in PER_QUERY}
    texts = {name: Texts.of(columns[name]) for name in ("data_set", "language", "query")}
    lists = columns["top_10"]
    lengths = np.diff(lists.offsets.to_numpy())
    flat = Texts.of(lists.flatten())
    return PerQuery(
        **texts,
        budget=columns["budget"].to_numpy(),
        trial=columns["trial"].to_numpy(),
        ndcg={k: columns[f"ndcg@{k}"].to_numpy() for k in CUTOFFS},
        score_retention=columns["score_retention"].to_numpy(zero_copy_only=False),
        top=Texts(_table(flat.codes, lengths), flat.names),
        length=lengths,
    )


def _table(codes: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Rankings as rows of ten, -1 after the last; almost always all of them have ten."""
    if (lengths == TOP).all():
        return codes.reshape(-1, TOP)
    slot = np.arange(len(codes)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    table, fits = np.full((len(lengths), TOP), -1, codes.dtype), slot < TOP
    table[np.repeat(np.arange(len(lengths)), lengths)[fits], slot[fits]] = codes[fits]
    return table


def read_kept(path: Path) -> pa.Table:
    return parquet.read(kept_path(path), KEPT)


def pack_per_query(frame: pd.DataFrame) -> bytes:
    frame = frame.sort_values(["data_set", "budget", "trial"], kind="stable")
    columns = {name: frame[name].tolist() for name in PER_QUERY}
    columns["score_retention"] = [None if np.isnan(value) else value for value in columns["score_retention"]]
    return parquet.pack(columns, PER_QUERY)


def pack_kept(rows: Sequence[tuple[str, float, int, np.ndarray]]) -> bytes:
    ordered = sorted(rows, key=lambda row: row[:3])
    return parquet.pack({name: [row[i] for row in ordered] for i, name in enumerate(KEPT)}, KEPT)
