"""What of data sets is needed to check a ranking, as tables: page ids, and graded relevance. No texts, no pictures."""

from __future__ import annotations

from collections.abc import Sequence

from harness.benchmarks.data_set import DataSet
from harness.parquet import pack

PAGES = {"data_set": "text", "page": "text"}
"""Every page, in the corpus's order."""
QRELS = {"data_set": "text", "language": "text", "query": "text", "page": "text", "grade": "integer"}
"""Every judged pair, in the order in which it was read; the language is empty where queries have none."""


def pages_table(data_sets: Sequence[DataSet]) -> bytes:
    rows = [(data_set.name, page) for data_set in data_sets for page in data_set.page_ids]
    return pack(_columns(rows, PAGES), PAGES)


def qrels_table(data_sets: Sequence[DataSet]) -> bytes:
    rows = [
        (data_set.name, data_set.languages.get(query, ""), query, page, grade)
        for data_set in data_sets
        for query, pages in data_set.qrels.items()
        for page, grade in pages.items()
    ]
    return pack(_columns(rows, QRELS), QRELS)


def _columns(rows: Sequence[tuple], form: dict[str, str]) -> dict[str, list]:
    return {name: [row[i] for row in rows] for i, name in enumerate(form)}
