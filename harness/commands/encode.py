"""`harness encode`: a benchmark's pages and queries into a store. Only options; the work is in `harness/encode.py`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from harness.commands.engine_options import EngineName, RayAddress, RayGpus
from harness.console import people, print_rows

if TYPE_CHECKING:
    from harness.store.reader import Store


def encode(
    backbone: Annotated[str, typer.Option(help="Name, name=folder, name=id@revision (Hugging Face), or your_file.py.")],
    benchmark: Annotated[str, typer.Option(help="Name (`harness list benchmarks`), or folder in ViDoRe's layout.")],
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
    part: Annotated[
        str | None, typer.Option(help="3/8: only the third of eight parts, for several processes or machines at once.")
    ] = None,
    engine: EngineName = None,
    ray_address: RayAddress = None,
    ray_gpus_per_worker: RayGpus = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Encode the pages and queries of a benchmark once; everything else reads the store.

    Interrupted, the same command goes on with the first shard that is missing. With --part 1/8 to --part 8/8 eight
    processes share the work, on one machine or several that see the same folder; whoever is last finishes the store,
    and the same command without --part does what any of them left. With --engine ray a cluster shares it by itself.
    """
    import harness
    from harness.progress import bar

    loaded = harness.load_benchmark(benchmark)
    for remark in loaded.remarks():
        people.print(escape(remark), soft_wrap=True)
    stores = harness.encode(
        backbone,
        loaded,
        store=store,
        device=device,
        dtype=dtype,
        max_visual_tokens=max_visual_tokens,
        batch_size=batch_size,
        vectors=vectors,
        attention_from=attention_from,
        repair=repair,
        part=part,
        engine=engine,
        ray_address=ray_address,
        ray_gpus_per_worker=ray_gpus_per_worker,
        progress=bar,
        say=lambda text: people.print(escape(text), soft_wrap=True),
    )
    if not stores and not as_json:
        return
    rows = [_row(made) for made in stores.values()]
    columns = {"pages": "pages", "queries": "queries", "vectors": "vectors", "megabytes": "MB", "signals": "signals"}
    title = rows[0]["store"] if len(rows) == 1 else f"{len(rows)} stores"
    print_rows(rows, columns if len(rows) == 1 else {"store": "store"} | columns, title=title, as_json=as_json)


def _row(made: Store) -> dict[str, Any]:
    manifest = made.manifest
    return {
        "store": str(made.folder),
        "pages": len(made),
        "queries": len(made.query_ids),
        "vectors": sum(shard.vectors for shard in manifest.shards.values()),
        "megabytes": round(sum(shard.bytes for shard in manifest.files) / 1e6, 1),
        "signals": [f"{name} x {rows}" for name, rows in made.signals.items()],
    }
