"""Benchmarks through mteb's own task classes, which load data sets at their pinned revisions; nothing is read twice.

A task with one corpus for all its languages (ViDoRe v2, v3) is one data set whose queries carry a language. Where
languages have pages of their own (four tasks of JinaVDR) each is a data set, since a query ranks its own corpus only.
Page ids are mteb's; query ids too, with the language before them where there are several.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import datasets
import mteb
from PIL import Image

from harness.benchmarks.content import content_hashes, corpus_hash, file_hash
from harness.benchmarks.data_set import DataSet, decode_page
from harness.benchmarks.embedded import BenchmarkError
from harness.benchmarks.known import differences, known

DEFAULT = "default"
"""mteb's name for the only subset of a task without languages."""
_COMMIT = re.compile(r"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])")


def load_task(name: str) -> tuple[DataSet, ...]:
    """The data sets of a task, by its mteb name; what was read is compared with what is known of it."""
    task = mteb.get_task(name)
    try:
        task.load_data()
    except (ConnectionError, OSError, datasets.exceptions.DatasetsError, ValueError) as error:
        path = task.metadata.dataset["path"]
        raise BenchmarkError(
            f"{name} cannot be loaded: {path} is not in the local cache and could not be fetched "
            f"({type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason given'}); "
            f"fetch it where there is a network, or name a folder with its files"
        ) from error
    return from_task(task)


def from_task(task: Any) -> tuple[DataSet, ...]:
    """The data sets of a loaded mteb task."""
    task.convert_v1_dataset_format_to_v2(num_proc=None)
    (split,) = task.eval_splits
    subsets = {subset: task.dataset[subset][split] for subset in task.hf_subsets}
    found = [
        _data_set(task.metadata.name, pages, {subset: subsets[subset] for subset in members}, len(subsets))
        for pages, members in _by_corpus(subsets)
    ]
    different = None
    if task.metadata.name in known()["tasks"]:
        revision = loaded_revision(next(iter(subsets.values()))["corpus"])
        counts = {subset: _count(data) for subset, data in subsets.items()}
        different = tuple(differences(task.metadata.name, counts, revision, {b.name: b.content for b in found}))
    return tuple(
        replace(b, mteb_task=task.metadata.name, revision=task.metadata.revision, differs=different) for b in found
    )


def query_id(subset: str, query: str) -> str:
    """mteb's query ids repeat from language to language; ours do not."""
    return query if subset == DEFAULT else f"{subset}:{query}"


def mteb_query_id(subset: str, query: str) -> str:
    """The way back."""
    return query if subset == DEFAULT else query.removeprefix(f"{subset}:")


def loaded_revision(rows: datasets.Dataset) -> str | None:
    """The commit a data set was really read from: offline, `datasets` takes whatever it has, without a word."""
    places = [*(rows.info.download_checksums or {}), *(file["filename"] for file in rows.cache_files)]
    commits = [commit for place in places for commit in _COMMIT.findall(str(place))]
    return commits[0] if commits else None


@dataclass(frozen=True)
class _Corpus:
    """Pages that stay encoded on disk until one is asked for."""

    ids: tuple[str, ...]
    rows: datasets.Dataset
    files: tuple[str, ...]
    texts: tuple[str, ...] | None = None
    """Of the pages, where mteb has them (ViDoRe v3.1 has what OCR read)."""

    @classmethod
    def of(cls, corpus: datasets.Dataset) -> _Corpus:
        rows = corpus.select_columns(["id", "image"]).cast_column("image", datasets.Image(decode=False))
        files = tuple(file_hash(stored_bytes(row["image"]) or b"") for row in rows)
        texts = tuple(text or "" for text in corpus["text"]) if "text" in corpus.column_names else None
        return cls(tuple(map(str, corpus["id"])), rows, files, texts)

    def image(self, index: int) -> Image.Image:
        return decode_page(self.ids[index], stored_bytes(self.rows[index]["image"]))


def stored_bytes(image: Mapping[str, Any] | None) -> bytes | None:
    """An image as it is stored: in the table, or in a file beside it."""
    if image is None:
        return None
    return image["bytes"] if image["bytes"] is not None else Path(image["path"]).read_bytes()


def _by_corpus(subsets: Mapping[str, Any]) -> list[tuple[_Corpus, list[str]]]:
    """Corpora, and the languages that share each. The very same rows are read once."""
    read: dict[str, _Corpus] = {}
    groups: dict[str, tuple[_Corpus, list[str]]] = {}
    for subset, data in subsets.items():
        rows = data["corpus"]
        if rows._fingerprint not in read:
            read[rows._fingerprint] = _Corpus.of(rows)
        pages = read[rows._fingerprint]
        groups.setdefault(corpus_hash(pages.ids, pages.files), (pages, []))[1].append(subset)
    return list(groups.values())


def _data_set(task: str, pages: _Corpus, subsets: Mapping[str, Any], of: int) -> DataSet:
    known_pages = set(pages.ids)
    if len(known_pages) != len(pages.ids):
        raise BenchmarkError(f"{task}: two pages have the same id")
    queries: dict[str, str] = {}
    languages: dict[str, str] = {}
    qrels: dict[str, dict[str, int]] = {}
    dropped = 0
    for subset, data in subsets.items():
        for query, text in zip(data["queries"]["id"], data["queries"]["text"], strict=True):
            if text is None or not text.strip():
                dropped += 1
                continue
            unique = query_id(subset, str(query))
            if unique in queries:
                raise BenchmarkError(f"{task}: the query id {unique!r} occurs twice")
            queries[unique] = text
            if subset != DEFAULT:
                languages[unique] = subset
            qrels[unique] = {page: int(grade) for page, grade in data["relevant_docs"].get(query, {}).items()}
            if unknown := sorted(qrels[unique].keys() - known_pages):
                raise BenchmarkError(f"{task}: qrels of query {unique!r} name page {unknown[0]!r}, not in the corpus")
    return DataSet(
        name=task if len(subsets) == of else f"{task}/{'+'.join(subsets)}",
        page_ids=pages.ids,
        image=pages.image,
        queries=queries,
        qrels=qrels,
        file_hashes=pages.files,
        content=content_hashes(pages.ids, pages.files, queries, languages, qrels, pages.texts),
        texts=pages.texts,
        languages=languages,
        dropped_queries=dropped,
    )


def _count(data: Any) -> dict[str, int]:
    texts = list(data["queries"]["text"])
    return {
        "pages": len(data["corpus"]),
        "queries": len(texts),
        "characters": sum(len(text or "") for text in texts),
        "qrels": sum(len(pages) for pages in data["relevant_docs"].values()),
    }
