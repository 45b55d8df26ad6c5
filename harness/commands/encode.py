"""`harness encode`: a benchmark's pages and queries into a store. Only options; the work is in `harness/encode.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.console import people, print_rows


def encode(
    backbone: Annotated[str, typer.Option(help="Name, name=folder, name=id@revision (Hugging Face), or your_file.py.")],
    benchmark: Annotated[Path, typer.Option(help="Folder in ViDoRe's layout: corpus, queries, qrels as parquet.")],
    store: Annotated[
        Path | None, typer.Option(help="Folder of stores; default $PRUNEBOARD_STORES or the cache.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cuda, mps or cpu; chosen by itself.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16, float16; default bfloat16 on a GPU.")] = None,
    max_visual_tokens: Annotated[int | None, typer.Option(help="At most so many visual tokens a page.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Pages at once; by memory, halved when too many.")] = None,
    vectors: Annotated[str, typer.Option(help="Precision of the vectors on disk: float16 or float32.")] = "float16",
    attention_from: Annotated[
        str | None, typer.Option(help="Read attention from this base model (folder or id@revision), or from `base`.")
    ] = None,
    repair: Annotated[bool, typer.Option(help="Encode damaged shards again.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Encode the pages and queries of a benchmark once; everything else reads the store.

    Interrupted, the same command goes on with the first shard that is missing.
    """
    from harness.backbones import registry
    from harness.backbones.contract import Options
    from harness.benchmarks.folder import read_folder
    from harness.encode import default_root
    from harness.encode import encode as run
    from harness.progress import bar

    pages = read_folder(benchmark)
    if pages.dropped_queries:
        people.print(f"{pages.dropped_queries} queries have no text and are left out")
    options = Options(device=device, dtype=dtype, max_visual_tokens=max_visual_tokens)
    loaded = registry.load(backbone, options)
    if attention_from is not None:
        from harness.backbones.attention_source import with_attention_from

        loaded = with_attention_from(loaded, attention_from)
    result = run(
        loaded,
        pages,
        store or default_root(),
        vector_dtype=vectors,
        batch_size=batch_size,
        repair=repair,
        progress=bar,
    )
    manifest = result.manifest
    tokens = sum(shard.vectors for shard in manifest.shards.values())
    files = [*manifest.shards.values(), *([manifest.queries] if manifest.queries else [])]
    row = {
        "store": str(result.folder),
        "pages": len(result),
        "queries": len(result.query_ids),
        "vectors": tokens,
        "megabytes": round(sum(shard.bytes for shard in files) / 1e6, 1),
        "signals": [f"{name} x {rows}" for name, rows in result.signals.items()],
    }
    columns = {"pages": "pages", "queries": "queries", "vectors": "vectors", "megabytes": "MB", "signals": "signals"}
    print_rows([row], columns, title=str(result.folder), as_json=as_json)
