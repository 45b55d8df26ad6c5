"""The data sets of a benchmark as one corpus: a page that several of them share is there once, and so are its twins.

ViDoRe v2's two ESG data sets judge the same pages. Indexed twice, every gold page would have a twin that counts as
wrong. Pages are the same if what was read of them is (the store's hash of pixels or text); imported vectors have no
hash, so their pages are told apart by data set and id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from harness.benchmarks.data_set import DataSet
from harness.store.reader import Store


@dataclass(frozen=True)
class Union:
    """Distinct pages, and the queries of all data sets that have a relevant one."""

    places: list[tuple[str, int]]
    """Where a page is read: data set, and index in its store."""
    page_ids: list[str]
    queries: list[torch.Tensor]
    query_ids: list[str]
    qrels: dict[str, dict[str, int]]
    about: dict[str, Any]
    """How many pages and queries the data sets list, and what became of them."""


def union(data_sets: Sequence[DataSet], stores: Mapping[str, Store]) -> Union:
    """One corpus, and the judgements of all data sets on it. Of two grades for a query and a page the higher counts."""
    id_of: dict[str, str] = {}  # what was read of a page -> its id here
    places: list[tuple[str, int]] = []
    listed, data_sets_of = 0, Counter[str]()
    queries: list[torch.Tensor] = []
    qrels: dict[str, dict[str, int]] = {}
    without_page = 0
    for data_set in data_sets:
        store = stores[data_set.name]
        own: dict[str, str] = {}
        for i, (page, seen) in enumerate(zip(store.page_ids, store.image_hashes, strict=True)):
            name = f"{data_set.name}/{page}"
            key = seen or name
            if key not in id_of:
                id_of[key] = name
                places.append((data_set.name, i))
            own[page] = id_of[key]
        listed += len(store)
        data_sets_of.update(set(own.values()))
        for i, query in enumerate(store.query_ids):
            grades: dict[str, int] = {}
            for page, grade in data_set.qrels.get(query, {}).items():
                grades[own[page]] = max(grade, grades.get(own[page], grade))
            if any(grade > 0 for grade in grades.values()):
                queries.append(store.query(i))
                qrels[f"{data_set.name}/{query}"] = grades
            else:
                without_page += 1
    about = {
        "data_sets": [data_set.name for data_set in data_sets],
        "pages_listed": listed,
        "pages": len(places),
        "pages_in_several_data_sets": sum(count > 1 for count in data_sets_of.values()),
        "twins_within_a_data_set": listed - data_sets_of.total(),
        "compared_by": "what was read of a page" if all(id_of[k] != k for k in id_of) else "data set and page id",
        "queries": len(queries),
        "queries_without_relevant_page": without_page,
    }
    return Union(places, list(id_of.values()), queries, list(qrels), qrels, about)
