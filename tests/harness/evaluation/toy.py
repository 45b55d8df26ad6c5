"""A retriever without a model and a benchmark to go with it, so that evaluations take a second.

A page's number is painted on it; its vectors, signals and queries are drawn from that number. Queries are some of the
page's own vectors with noise, so that pruning hurts.
"""

import io
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

BACKBONE = """
import numpy as np
import torch

from harness.backbones.contract import Card, backbone
from harness.store.encoded_page import EncodedPage

SIGNALS = ("indegree", "indegree_max", "all_to_visual", "eos", "ink")


class Toy:
    card = Card("toy", "none", "1", 3, 2, 16, "float32", SIGNALS, "drawn", "", "", "", "{}")

    def encode_pages(self, images):
        return [page(image.getpixel((0, 0))[0]) for image in images]

    def encode_queries(self, texts):
        return [query(*map(int, text.split()[1:])) for text in texts]


def draw(number):
    rng = np.random.default_rng(number)
    count = 4 * int(rng.integers(3, 12))
    vectors = rng.standard_normal((count, 16))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), rng


def page(number):
    vectors, rng = draw(number)
    drawn = {s: rng.exponential(size=(1 if s == "ink" else 3, len(vectors))) for s in SIGNALS}
    signals = {name: torch.from_numpy(values).float() for name, values in drawn.items()}
    return EncodedPage(torch.from_numpy(vectors).float(), (4, len(vectors) // 4), signals)


def query(number, which):
    vectors, _ = draw(number)
    rng = np.random.default_rng([number, which])
    chosen = vectors[rng.choice(len(vectors), 5, replace=False)] + 0.25 * rng.standard_normal((5, 16))
    return torch.from_numpy(chosen / np.linalg.norm(chosen, axis=1, keepdims=True)).float()


@backbone("toy", checkpoint="none", signals=("indegree", "indegree_max", "all_to_visual", "eos", "ink"))
def load(checkpoint, options):
    return Toy()
"""


CRASHING = """
from pruners import scorer

@scorer("crashing")
def crashing(page):
    if page.id == "page-37":
        raise ValueError("cannot stand this page")
    return page.vectors[:, 0]
"""
"""A pruner that fails on one page of the second data set."""


def write_backbone(folder: Path) -> Path:
    path = folder / "toy_backbone.py"
    path.write_text(BACKBONE)
    return path


def write_data_set(folder: Path, numbers: range, queries: int = 20, languages: tuple[str, ...] = ()) -> Path:
    """Pages with these numbers; queries about them in turn, in every language."""
    asked = [
        {"query-id": f"q{i}{language}", "query": f"find {numbers[i % len(numbers)]} {i}", "language": language}
        for language in languages or ("",)
        for i in range(queries)
    ]
    tables = {
        "corpus": [{"corpus-id": f"page-{n}", "image": {"bytes": paint(n), "path": None}} for n in numbers],
        "queries": asked,
        "qrels": [
            {"query-id": row["query-id"], "corpus-id": f"page-{row['query'].split()[1]}", "score": 1} for row in asked
        ],
    }
    for part, rows in tables.items():
        (folder / part).mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows), folder / part / "test-00000-of-00001.parquet")
    return folder


@lru_cache(maxsize=256)
def paint(number: int, size: tuple[int, int] = (8, 8)) -> bytes:
    image = Image.fromarray(np.full((*size, 3), number, np.uint8))
    encoded = io.BytesIO()
    image.save(encoded, "PNG")
    return encoded.getvalue()
