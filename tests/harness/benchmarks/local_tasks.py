"""Small data sets in ViDoRe's two layouts, and mteb's own task classes pointed at them.

Graded relevance, pages that occur twice and so tie, a query without text, one without a relevant page; in v2's layout
four languages. Pages and queries are those of the toy retriever of `tests/harness/evaluation/toy.py`.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.harness.evaluation.toy import paint

LANGUAGES = ("french", "spanish", "english", "german")  # of ViDoRe v2
README = """---
configs:
{configs}---
"""
FEATURES = {
    "corpus-id": {"dtype": "int64", "_type": "Value"},
    "image": {"_type": "Image"},
    "doc-id": {"dtype": "string", "_type": "Value"},
}
CONFIG = "- config_name: {part}\n  data_files:\n  - split: test\n    path: {part}/test-*.parquet\n"


def write_layout(
    folder: Path,
    *,
    pages: int,
    queries: int,
    twins: int = 6,
    languages: tuple[str, ...] = (),
    size: tuple[int, int] = (8, 8),
    start: int = 0,
) -> Path:
    """Pages 0 … pages-1; the last `twins` of them look like the first. Each query has one page of grade 2, one of 1.

    Numbers are painted on pages from `start` on.
    """
    number = [start + (i if i < pages - twins else i - (pages - twins)) for i in range(pages)]
    asked: list[dict[str, Any]] = []
    qrels = []
    for language in languages or ("",):
        for i in range(queries):
            query, page = len(asked), i % (pages - twins)
            asked.append({"query-id": query, "query": f"find {number[page]} {query}", "language": language})
            qrels.append({"query-id": query, "corpus-id": page, "score": 2})
            qrels.append({"query-id": query, "corpus-id": (7 * i + 3) % pages, "score": 1} if i % 3 else qrels[-1])
    if not languages:  # ids without a text, and without a page
        qrels.append({"query-id": len(asked), "corpus-id": 1, "score": 1})
        asked.append({"query-id": len(asked), "query": None, "language": ""})
        asked.append({"query-id": len(asked), "query": "find 5 99", "language": ""})
    tables = {
        "corpus": [
            {
                "corpus-id": i,
                "image": {"bytes": paint(number[i] % 256, size), "path": f"{i}.png"},
                "doc-id": f"doc {i // 4}",
            }
            for i in range(pages)
        ],
        "queries": asked,
        "qrels": qrels,
    }
    for part, rows in tables.items():
        (folder / part).mkdir(parents=True)
        table = pa.Table.from_pylist(rows)
        if part == "corpus":  # as `datasets` marks a column of images
            table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": FEATURES}})})
        pq.write_table(table, folder / part / "test-00000-of-00001.parquet", row_group_size=8)
    (folder / "README.md").write_text(README.format(configs="".join(CONFIG.format(part=part) for part in tables)))
    return folder


def local_task(base: str, folder: Path, **update: Any) -> Any:
    """mteb's own class of a task with its data set in a folder. The class that mteb has is left as it is."""
    import mteb

    theirs = type(mteb.get_task(base))
    dataset = {"path": str(folder), "revision": "local"}
    about = theirs.metadata.model_copy(update={"name": folder.name, "dataset": dataset, **update})
    cutoffs = (1, 5, 10, 50, 100)  # ours: mteb leaves out 50
    return type(folder.name, (theirs,), {"metadata": about, "k_values": cutoffs})()
