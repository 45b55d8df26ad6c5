"""`harness check`: prove pruners on made-up hard pages, before any real data is spent on them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from harness.console import people, print_rows


def check(
    pruner: Annotated[
        list[str], typer.Argument(help="A name, name(param=value), name(param=1|2|3), file.py, or file.py:name(…).")
    ],
    signal: Annotated[
        list[str] | None, typer.Option(help="A signal that a backbone of your own gives; repeatable.")
    ] = None,
    sandbox: Annotated[
        str, typer.Option(help="For methods of files: auto (where it can be had), on (all but built-in), or off.")
    ] = "auto",
    readable: Annotated[
        list[Path] | None, typer.Option(help="A file or folder that a method in the sandbox may read; repeatable.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Prove that a pruner keeps the contract: hard made-up pages, every budget, twice. Exit status 1 if it does not."""
    from pruners.core.contract_check import BUDGETS, check_contract
    from pruners.core.errors import CatalogError, PrunerError
    from pruners.core.window import Window
    from pruners.guests.host import Isolation, host

    broken = 0
    rows: list[dict] = []
    for method, codec in host(pruner, apart=Isolation(sandbox, tuple(readable or ()))):
        if codec is not None:
            raise CatalogError(f"'{method} | {codec}' says how vectors are stored; here only a pruner is expected")
        start = time.perf_counter()
        try:
            method = method.with_window(Window(0, None))
            proofs = check_contract(method, signal or ())
        except PrunerError as error:
            people.print(f"[bold red]broken[/]: {escape(str(error))}", soft_wrap=True)
            broken += 1
            continue
        people.print(
            f"[bold green]keeps the contract[/]: {escape(str(method))} "
            f"({len(proofs)} pages x {len(BUDGETS)} budgets in {time.perf_counter() - start:.1f} s)"
        )
        for proof in proofs:
            kept = {f"{b:g}": count for b, count in zip(BUDGETS, proof.counts, strict=True)}
            rows.append({"pruner": str(method), "page": proof.page, "vectors": proof.n, **kept})
    if rows:
        columns = {"pruner": "pruner", "page": "page", "vectors": "vectors", **{f"{b:g}": f"γ {b:g}" for b in BUDGETS}}
        print_rows(rows, columns, title="vectors kept, by budget", as_json=as_json)
    if broken:
        raise typer.Exit(1)
