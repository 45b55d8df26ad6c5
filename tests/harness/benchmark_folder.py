"""A small benchmark folder in ViDoRe's layout, for tests."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.harness.page_images import page_image

SIZES = [(200, 260), (300, 150), (120, 120), (260, 200)]


def write_benchmark(folder: Path, *, pages: int = 10, bad_page: int | None = None) -> Path:
    """`pages` pages of several sizes in two corpus files, three queries and one without text."""
    ids = [f"doc_{i}" for i in range(pages)]
    images = []
    for i in range(pages):
        buffer = io.BytesIO()
        page_image(SIZES[i % len(SIZES)], i).save(buffer, "PNG")
        encoded = buffer.getvalue() if i != bad_page else b"this is no image"
        images.append({"bytes": encoded, "path": f"{i}.png"})
    half = pages // 2
    for part, (start, stop) in enumerate([(0, half), (half, pages)]):
        table = pa.table({"_id": ids[start:stop], "image": images[start:stop]})
        _write(table, folder / "corpus" / f"test-{part:05d}-of-00002.parquet")
    queries = {"query-id": [0, 1, 2, 3], "query": ["revenue", None, "energy report in 2021?", "table 3"]}
    _write(pa.table(queries), folder / "queries" / "test-00000-of-00001.parquet")
    qrels = {
        "query-id": [0, 1, 2, 3, 3],
        "corpus-id": ids[:5],
        "score": [1, 1, 1, 2, 1],
    }
    _write(pa.table(qrels), folder / "qrels" / "test-00000-of-00001.parquet")
    return folder


def _write(table: pa.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=3)
