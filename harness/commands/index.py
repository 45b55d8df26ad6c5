"""`harness index`: only options and what a person sees; the work is in `harness/page_index`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from harness.commands.engine_options import EngineName, RayAddress
from harness.console import output, people


def index(
    run: Annotated[Path, typer.Argument(help="A run folder of `harness evaluate`.")],
    method: Annotated[str, typer.Argument(help="One of its methods, as its table names it: 'kmeans | int8'.")],
    out: Annotated[Path, typer.Option(help="Folder of the index.")],
    budget: Annotated[float, typer.Option(help="One of the run's budgets.")] = 0.1,
    pages: Annotated[
        Path | None,
        typer.Option(help="A store of `harness encode` by the run's backbone. Default: the pages of the run."),
    ] = None,
    data_set: Annotated[str | None, typer.Option(help="Of the run's data sets, if it has several.")] = None,
    store: Annotated[Path | None, typer.Option(help="Folder of stores, to find those of the run.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes. Default: one a core.")] = None,
    engine: EngineName = None,
    ray_address: RayAddress = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of words.")] = False,
) -> None:
    """Write the index of a corpus: pages pruned by a method as a run measured it, and stored by its codec.

    Killed and started again, it goes on where it was. `harness.load_index` reads it, and searches it exactly.
    """
    import harness
    from harness.progress import bar

    made = harness.write_index(
        run,
        method,
        budget=budget,
        out=out,
        pages=pages,
        data_set=data_set,
        store=store,
        workers=workers,
        engine=engine,
        ray_address=ray_address,
        progress=None if as_json else bar,
    )
    if as_json:
        print(json.dumps({"folder": str(out), **made.facts}, indent=1, ensure_ascii=False))
        return
    facts = made.facts
    shared = f" and {facts['shared_bytes'] / 1000:.3g} KB that all share" if facts["shared_bytes"] else ""
    output.print(
        f"[bold]{escape(method)}[/] at {budget:g}: {len(made):,} pages, {facts['vectors']:,} vectors of "
        f"{made.dim} numbers, {facts['bytes'] / len(made) / 1000:.3g} KB a page, {facts['bytes'] / 1e6:.4g} MB{shared}",
        soft_wrap=True,
    )
    output.print(f"index: {escape(str(out))}", soft_wrap=True)
    people.print(f"next: harness.load_index({str(out)!r}).search(query_vectors)", soft_wrap=True, markup=False)
