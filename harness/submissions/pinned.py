"""What a benchmark is, beside its submissions: counts and content hashes, page ids, relevance. No texts, no pictures.

    submissions/<benchmark>/benchmark.json    its data sets
    submissions/<benchmark>/pages.parquet     page ids in the corpus's order
    submissions/<benchmark>/qrels.parquet     graded relevance, whose hash is computed again and compared

With it every ranking can be judged again, offline. A benchmark of which only figures are reported has the first alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from harness import parquet
from harness.benchmarks.content import qrels_hash
from harness.benchmarks.tables import PAGES, QRELS
from harness.submissions.entry import read_model
from harness.submissions.schema import BenchmarkFacts, DataSetFacts

FILE = "benchmark.json"
DISCOUNTS = 1 / np.log2(np.arange(2, 102))
"""Of the first hundred ranks, as trec_eval has them."""


@dataclass(frozen=True)
class LanguageQueries:
    """The queries of one language: where they are among all, and their order by name."""

    at: np.ndarray
    by_name: np.ndarray
    names: tuple[str, ...]
    """In that order."""


@dataclass(frozen=True)
class Judgements:
    """Relevance in one data set. Queries without a relevant page are left out, as they are when measuring."""

    page_ids: tuple[str, ...]
    qrels: Mapping[str, Mapping[str, int]]
    languages: Mapping[str, str]

    @cached_property
    def queries(self) -> dict[str, int]:
        judged = (query for query, pages in self.qrels.items() if any(grade > 0 for grade in pages.values()))
        return {query: i for i, query in enumerate(judged)}

    @cached_property
    def pages(self) -> dict[str, int]:
        return {page: i for i, page in enumerate(self.page_ids)}

    @cached_property
    def language_of(self) -> np.ndarray:
        return np.array([self.languages.get(query, "") for query in self.queries], dtype=object)

    @cached_property
    def asked(self) -> dict[str, LanguageQueries]:
        """By language."""
        names, found = np.array(list(self.queries), dtype=object), {}
        for language in dict.fromkeys(self.language_of):
            at = np.flatnonzero(self.language_of == language)
            order = np.argsort(names[at])
            found[language] = LanguageQueries(at, order, tuple(names[at][order]))
        return found

    @cached_property
    def language_code(self) -> np.ndarray:
        """The language of each query as its place in `asked`."""
        return np.array([list(self.asked).index(language) for language in self.language_of])

    @cached_property
    def grades(self) -> np.ndarray:
        """`[queries, pages + 1]`: the last column is that of no page."""
        table = np.zeros((len(self.queries), len(self.page_ids) + 1), np.int16)
        for query, i in self.queries.items():
            for page, grade in self.qrels[query].items():
                table[i, self.pages[page]] = max(grade, 0)
        return table

    @cached_property
    def highest(self) -> int:
        """Of all grades."""
        return int(self.grades.max())

    @cached_property
    def relevant(self) -> np.ndarray:
        """Relevant pages of each query."""
        return (self.grades > 0).sum(1)

    def ideal(self, cutoff: int) -> np.ndarray:
        """The best possible DCG of each query."""
        if cutoff not in self._ideals:
            self._ideals[cutoff] = self._ideal(cutoff)
        return self._ideals[cutoff]

    @cached_property
    def _ideals(self) -> dict[int, np.ndarray]:
        return {}

    def _ideal(self, cutoff: int) -> np.ndarray:
        best = [
            sorted((g for g in self.qrels[query].values() if g > 0), reverse=True)[:cutoff] for query in self.queries
        ]
        return np.array([np.dot(grades, DISCOUNTS[: len(grades)]) for grades in best])


@dataclass(frozen=True)
class Pinned:
    """A benchmark as pinned. `judged` is empty where only figures are reported."""

    benchmark: BenchmarkFacts
    judged: Mapping[str, Judgements] = field(default_factory=dict)

    @property
    def data_sets(self) -> dict[str, DataSetFacts]:
        return {data_set.name: data_set for data_set in self.benchmark.data_sets}


def read_pinned(folder: Path) -> Pinned:
    """The benchmark of a folder of submissions."""
    benchmark = read_model(folder / FILE, BenchmarkFacts)
    return Pinned(benchmark, read_tables(folder) if (folder / "qrels.parquet").exists() else {})


def read_tables(folder: Path) -> dict[str, Judgements]:
    """Page ids and relevance by data set."""
    pages = _by_data_set(parquet.read(folder / "pages.parquet", PAGES))
    qrels = _by_data_set(parquet.read(folder / "qrels.parquet", QRELS))
    return {name: _judged(pages[name], qrels[name]) for name in pages if name in qrels}


def differences(pinned: Pinned) -> list[tuple[str, str]]:
    """Where the tables are not what `benchmark.json` says: a field, and a sentence."""
    found = []
    for name, data_set in pinned.data_sets.items():
        if name not in pinned.judged:
            if pinned.judged or data_set.qrels is not None:
                found.append((name, "has no rows in pages.parquet and qrels.parquet"))
            continue
        judged = pinned.judged[name]
        unknown = {page for row in judged.qrels.values() for page in row} - set(judged.page_ids)
        if unknown:
            found.append((f"{name}.qrels", f"judges {len(unknown)} pages that pages.parquet has not"))
            continue
        stated = {"qrels": data_set.qrels, "pages": data_set.pages, "queries": data_set.queries}
        read = {
            "qrels": qrels_hash(judged.qrels),
            "pages": len(set(judged.page_ids)),
            "queries": len(judged.queries),
        }
        for what, value in stated.items():
            if value != read[what]:
                found.append((f"{name}.{what}", f"is {value}, but the tables give {read[what]}"))
        languages = tuple(sorted(set(judged.language_of) - {""}))
        if tuple(sorted(data_set.languages)) != languages:
            found.append((f"{name}.languages", f"are {data_set.languages}, but the tables give {languages}"))
    found += [(name, "is in the tables only") for name in sorted(set(pinned.judged) - set(pinned.data_sets))]
    return found


def _by_data_set(table: pa.Table) -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {}
    for row in table.to_pylist():
        found.setdefault(row["data_set"], []).append(row)
    return found


def _judged(pages: list[dict], qrels: list[dict]) -> Judgements:
    grades: dict[str, dict[str, int]] = {}
    for row in qrels:
        grades.setdefault(row["query"], {})[row["page"]] = row["grade"]
    languages = {row["query"]: row["language"] for row in qrels}
    return Judgements(tuple(row["page"] for row in pages), grades, languages)
