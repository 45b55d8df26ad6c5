"""Labels that a folder brings: `queries.jsonl` and `qrels.tsv`, every row checked, every problem kept.

    queries.jsonl   {"id": "q1", "text": "revenue in 2021?", "language": "english"}     (also BEIR's `_id`, `query-id`)
    qrels.tsv       query-id <tab> corpus-id <tab> score       a header, or none; without a score the page is relevant

A page is named by its file (`scans/0001.png`), a PDF's page by file and number (`report.pdf#page=3`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.benchmarks.data_set import QUERY_ID, QUERY_TEXT
from harness.importing.problems import ImportProblem

QUERIES, QRELS = "queries.jsonl", "qrels.tsv"
HEADER = ("query-id", "corpus-id", "score")


@dataclass
class Labels:
    """Queries and grades as read, and what was wrong. `rows` of qrels are kept to name them when a page is missing."""

    queries: dict[str, str] = field(default_factory=dict)
    languages: dict[str, str] = field(default_factory=dict)
    qrels: dict[tuple[str, str], int] = field(default_factory=dict)
    rows: dict[tuple[str, str], int] = field(default_factory=dict)
    problems: list[ImportProblem] = field(default_factory=list)


def read_labels(folder: Path) -> Labels:
    """Both files of a folder. Whether the pages exist is the caller's to see."""
    labels = Labels()
    known = _read_queries(folder / QUERIES, labels)
    _read_qrels(folder / QRELS, labels, known)
    if labels.queries and not labels.qrels and not labels.problems:
        labels.problems.append(ImportProblem(QRELS, None, "it has no rows, so there is nothing to measure"))
    return labels


def _read_queries(path: Path, labels: Labels) -> set[str]:
    """Fill in the queries; the ids of all rows, bad ones too, so that a bad query is told once."""
    known: set[str] = set()

    def wrong(row: int, what: str) -> None:
        labels.problems.append(ImportProblem(path.name, row, what))

    for row, line in _lines(path, labels):
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            wrong(row, f"this is no JSON ({error})")
            continue
        if not isinstance(fields, dict):
            wrong(row, "a query is a JSON object with an id and a text")
            continue
        query = _first(fields, QUERY_ID)
        if not isinstance(query, (str, int)) or isinstance(query, bool) or not str(query).strip():
            wrong(row, f"no id (one of {', '.join(QUERY_ID)}; text or a whole number)")
            continue
        query = str(query)
        if query in known:
            wrong(row, f"the query id {query!r} occurs twice")
            continue
        known.add(query)
        text = _first(fields, QUERY_TEXT)
        if text is None:
            wrong(row, f"query {query!r} is null: it would match every page")
        elif not isinstance(text, str) or not text.strip():
            wrong(row, f"query {query!r} is empty")
        elif not isinstance(language := fields.get("language") or "", str):
            wrong(row, f"the language of query {query!r} is no text")
        else:
            labels.queries[query] = text
            if language:
                labels.languages[query] = language
    if not known and not labels.problems:
        labels.problems.append(ImportProblem(path.name, None, "it has no queries"))
    return known


def _read_qrels(path: Path, labels: Labels, known: set[str]) -> None:
    for row, line in _lines(path, labels):
        cells = [cell.strip() for cell in line.split("\t")]
        if row == 1 and tuple(cells) == HEADER[: len(cells)]:
            continue
        what = None
        if len(cells) not in (2, 3) or not all(cells):
            what = f"expected {' <tab> '.join(HEADER)}, found {len(cells)} cells"
        elif cells[0] not in known:
            what = f"the query {cells[0]!r} is not in {QUERIES}"
        elif (cells[0], cells[1]) in labels.qrels:
            what = (
                f"query {cells[0]!r} and page {cells[1]!r} were judged before, in row {labels.rows[cells[0], cells[1]]}"
            )
        elif len(cells) == 3 and not _is_grade(cells[2]):
            what = f"the score {cells[2]!r} is no whole number from 0"
        if what is not None:
            labels.problems.append(ImportProblem(path.name, row, what))
            continue
        pair = (cells[0], cells[1])
        labels.qrels[pair] = int(cells[2]) if len(cells) == 3 else 1
        labels.rows[pair] = row


def _lines(path: Path, labels: Labels) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        labels.problems.append(ImportProblem(path.name, None, "there is no such file in the folder"))
        return
    except (OSError, UnicodeDecodeError) as error:
        labels.problems.append(ImportProblem(path.name, None, f"it cannot be read as UTF-8 text ({error})"))
        return
    # Not splitlines(): a query may hold one of the rarer line separators, and rows must be those an editor shows.
    for row, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield row, line.rstrip("\r")


def _first(fields: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((fields[name] for name in names if name in fields), None)


def _is_grade(text: str) -> bool:
    return text.isascii() and text.isdigit()
