"""The two tables of a measured submission: one row a query, and the vectors kept of each page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from harness import parquet
from harness.metrics.ranking import CUTOFFS

TOP = 10
PER_QUERY = {
    "data_set": "text",
    "language": "text",
    "budget": "number",
    "trial": "integer",
    "query": "text",
    **{f"ndcg@{k}": "number" for k in CUTOFFS},
    "score_retention": "float32",
    "top_10": "texts",
}
"""NDCG of every query with a relevant page, its Score Retention (missing where it has no ratio), its ten best pages."""

KEPT = {"data_set": "text", "budget": "number", "trial": "integer", "kept": "integers"}
"""One row a data set, budget and trial; `kept` has a number for each page, in the order of `pages.parquet`."""

FIGURES = [name for name in PER_QUERY if name != "top_10"]


def per_query_path(path: Path) -> Path:
    return path.with_suffix(".parquet")


def kept_path(path: Path) -> Path:
    return path.with_suffix(".kept.parquet")


def read_per_query(path: Path) -> pa.Table:
    return parquet.read(per_query_path(path), PER_QUERY, optional=("score_retention",))


def read_kept(path: Path) -> pa.Table:
    return parquet.read(kept_path(path), KEPT)


def figures(table: pa.Table) -> pd.DataFrame:
    """All columns but the rankings, as a frame; texts are categories."""
    return table.select(FIGURES).to_pandas()


def pack_per_query(frame: pd.DataFrame) -> bytes:
    order = ["data_set", "budget", "trial"]
    frame = frame.sort_values(order, kind="stable")
    columns = {name: frame[name].tolist() for name in PER_QUERY}
    columns["score_retention"] = [None if np.isnan(value) else value for value in columns["score_retention"]]
    return parquet.pack(columns, PER_QUERY)


def pack_kept(rows: Sequence[tuple[str, float, int, np.ndarray]]) -> bytes:
    ordered = sorted(rows, key=lambda row: row[:3])
    return parquet.pack({name: [row[i] for row in ordered] for i, name in enumerate(KEPT)}, KEPT)
