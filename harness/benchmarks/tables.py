"""What of data sets is needed to check a ranking, as tables: page ids, and graded relevance. No texts, no pictures."""

from __future__ import annotations

from collections.abc import Sequence

from harness.benchmarks.folder import Benchmark
from harness.parquet import pack

PAGES = {"data_set": "text", "page": "text"}
"""Every page, in the corpus's order."""
QRELS = {"data_set": "text", "language": "text", "query": "text", "page": "text", "grade": "integer"}
"""Every judged pair, in the order in which it was read; the language is empty where queries have none."""


def pages_table(tasks: Sequence[Benchmark]) -> bytes:
    rows = [(task.name, page) for task in tasks for page in task.page_ids]
    return pack(_columns(rows, PAGES), PAGES)


def qrels_table(tasks: Sequence[Benchmark]) -> bytes:
    rows = [
        (task.name, task.languages.get(query, ""), query, page, grade)
        for task in tasks
        for query, pages in task.qrels.items()
        for page, grade in pages.items()
    ]
    return pack(_columns(rows, QRELS), QRELS)


def _columns(rows: Sequence[tuple], form: dict[str, str]) -> dict[str, list]:
    return {name: [row[i] for row in rows] for i, name in enumerate(form)}
