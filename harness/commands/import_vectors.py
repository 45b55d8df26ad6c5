"""`harness import-vectors`: a store from vectors one already has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.console import print_rows


def import_vectors(
    pages: Annotated[Path, typer.Argument(help="Page vectors: .safetensors, .npz or .parquet.")],
    queries: Annotated[Path, typer.Argument(help="Query vectors, in one of the same formats.")],
    out: Annotated[Path, typer.Option(help="The store folder to make.")],
    name: Annotated[str, typer.Option(help="What made the vectors: the retriever's name.")],
    vectors: Annotated[str, typer.Option(help="Precision on disk: float16 or float32.")] = "float16",
    note: Annotated[str, typer.Option(help="Anything worth keeping in the manifest.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Make a store from page and query vectors, without any model. Methods that need other signals are refused."""
    import harness

    store = harness.import_vectors(pages, queries, out, name=name, vectors=vectors, note=note)
    tokens = sum(shard.vectors for shard in store.manifest.shards.values())
    row = {
        "store": str(store.folder),
        "pages": len(store),
        "queries": len(store.query_ids),
        "vectors": tokens,
        "dim": store.dim,
        "signals": [f"{name} x {rows}" for name, rows in store.signals.items()],
    }
    columns = {key: key for key in ("pages", "queries", "vectors", "dim", "signals")}
    print_rows([row], columns, title=str(store.folder), as_json=as_json)
