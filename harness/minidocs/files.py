"""The benchmark on disk: ViDoRe's parquet layout, one folder a dataset, and `manifest.json` with content hashes.

What is evaluated is what is pinned here, never a fresh rendering: another version of FreeType may draw another pixel.
Hashes are those of `harness/benchmarks/content.py`, so every reader sees whether these are the pinned files.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
from PIL import Image

from harness.benchmarks.data_set import DataSet, read_folder
from pruners.core.errors import PruneBoardError

from .benchmark import BENCHMARKS, DrawnDataSet, Recipe, build

DATA = Path(__file__).parent / "data"
PARTS = ("corpus", "queries", "qrels")
_FILE = "test-00000-of-00001.parquet"

_README = """---
license: mit
language: {languages}
configs:
{configs}---

# {benchmark} / {name}

{pages} synthetic pages ({layouts}), {queries} queries, drawn by `scripts/build_minidocs.py`; see `docs/minidocs.md`.
Figures on these pages are of synthetic documents and do not speak for ViDoRe.
"""
_CONFIG = "- config_name: {part}\n  data_files:\n  - split: test\n    path: {part}/test-*.parquet\n"


@dataclass(frozen=True)
class Content:
    """A dataset as its files say it: pages by id, query rows, and grades `qrels[query id][page id]`."""

    images: dict[int, Image.Image]
    queries: list[dict[str, Any]]
    qrels: dict[int, dict[int, int]]


def drawn(data: DrawnDataSet) -> Content:
    """A dataset drawn now, by this machine's Pillow."""
    return Content(
        {place: data.image(place) for place in range(len(data.pages))},
        [
            {"query-id": place, "query": query.text, "language": query.language, "kind": query.ask.kind}
            for place, query in enumerate(data.queries)
        ],
        {query: dict(pages) for query, pages in data.qrels.items()},
    )


def folder_of(benchmark: str, name: str, root: Path = DATA) -> Path:
    return root / benchmark / name


def read(folder: Path) -> Content:
    """A pinned dataset, from its files."""
    for part in PARTS:
        if not (folder / part / _FILE).exists():
            raise PruneBoardError(
                f"{folder / part / _FILE} is missing; write it with `python scripts/build_minidocs.py`"
            )
    tables = {part: parquet.read_table(folder / part / _FILE).to_pylist() for part in PARTS}
    qrels: dict[int, dict[int, int]] = {}
    for row in tables["qrels"]:
        qrels.setdefault(row["query-id"], {})[row["corpus-id"]] = row["score"]
    images: dict[int, Image.Image] = {
        row["corpus-id"]: Image.open(io.BytesIO(row["image"]["bytes"])) for row in tables["corpus"]
    }
    return Content(images, tables["queries"], qrels)


def manifest(root: Path = DATA) -> dict[str, dict[str, dict[str, Any]]]:
    """Benchmark -> dataset -> the sha256 of its corpus, queries and qrels, and its counts, to be listed by."""
    return json.loads((root / "manifest.json").read_text())


def recipes() -> Iterator[tuple[str, Recipe]]:
    for benchmark, members in BENCHMARKS.items():
        for recipe in members:
            yield benchmark, recipe


def write_all(root: Path = DATA) -> None:
    """Draw every dataset and pin it."""
    for benchmark, recipe in recipes():
        _write(drawn(build(recipe)), benchmark, recipe, folder_of(benchmark, recipe.name, root))
    pin(root)


def pin(root: Path = DATA) -> None:
    """Write the manifest of the files that are there."""
    pinned: dict[str, dict[str, dict[str, Any]]] = {}
    for benchmark, recipe in recipes():
        data_set = read_folder(folder_of(benchmark, recipe.name, root))
        pinned.setdefault(benchmark, {})[recipe.name] = {**data_set.content, "counts": counts(data_set)}
    (root / "manifest.json").write_text(json.dumps(pinned, indent=2) + "\n")


def counts(data_set: DataSet) -> dict[str, Any]:
    languages = sorted(set(data_set.languages.values()))
    return {"pages": len(data_set.page_ids), "queries": len(data_set.queries), "languages": languages}


def _write(content: Content, benchmark: str, recipe: Recipe, folder: Path) -> None:
    from datasets import DrawnDataSet as Table
    from datasets import Features, Value
    from datasets import Image as ImageFeature

    number, text = Value("int64"), Value("string")
    corpus = [
        {"corpus-id": page, "image": {"bytes": _png(image), "path": None}} for page, image in content.images.items()
    ]
    qrels = [
        {"query-id": query, "corpus-id": page, "score": grade}
        for query, pages in content.qrels.items()
        for page, grade in pages.items()
    ]
    tables = {
        "corpus": (corpus, {"corpus-id": number, "image": ImageFeature()}),
        "queries": (content.queries, {"query-id": number, "query": text, "language": text, "kind": text}),
        "qrels": (qrels, {"query-id": number, "corpus-id": number, "score": number}),
    }
    for part, (rows, features) in tables.items():
        (folder / part).mkdir(parents=True, exist_ok=True)
        columns = {name: [row[name] for row in rows] for name in features}
        Table.from_dict(columns, features=Features(features)).to_parquet(folder / part / _FILE)
    (folder / "README.md").write_text(
        _README.format(
            languages=json.dumps([{"english": "en", "french": "fr"}[language] for language in recipe.languages]),
            configs="".join(_CONFIG.format(part=part) for part in PARTS),
            benchmark=benchmark,
            name=recipe.name,
            pages=len(content.images),
            layouts=", ".join(recipe.layouts),
            queries=len(content.queries),
        )
    )


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
