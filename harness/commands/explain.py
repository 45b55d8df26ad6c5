"""`harness explain`: only options and what a person sees; the work is in `Results.explain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from harness.commands.show import open_in_browser
from harness.console import output, people


def explain(
    run: Annotated[Path, typer.Argument(help="A run folder of `harness evaluate`.")],
    method: Annotated[str | None, typer.Option(help="A method of the run. Default: its first.")] = None,
    against: Annotated[str, typer.Option(help="Another method of the run, or `full`: the unpruned index.")] = "full",
    budget: Annotated[float | None, typer.Option(help="One of the run's. Default: 0.1.")] = None,
    queries: Annotated[int, typer.Option(help="How many queries are shown.")] = 20,
    store: Annotated[Path | None, typer.Option(help="Folder of stores.")] = None,
    out: Annotated[Path | None, typer.Option(help="Default: explain-METHOD.html in the run folder.")] = None,
    figures_only: Annotated[bool, typer.Option("--figures-only", help="No pages, no queries' words.")] = False,
    open_: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
) -> None:
    """Say why a method loses: where, how much, and on which queries, with the pages drawn. One HTML file.

    Everything is worked out again from the run's own record and compared with it; a difference is an error.
    """
    import harness
    from harness.progress import bar

    report = harness.load_run(run).explain(
        method, against=against, budget=budget, most=queries, store=store, figures_only=figures_only, progress=bar
    )
    found = report.found
    name = "".join(c if c.isalnum() or c in "._-" else "_" for c in f"explain-{found.method}-{found.against}")
    path = report.save(out or run / f"{name}-{found.budget:g}.html")
    output.print(escape(report.words), soft_wrap=True)
    for what in found.missing:
        people.print(f"[yellow]missing[/] {escape(what)}", soft_wrap=True)
    output.print(escape(str(path)), soft_wrap=True)
    if open_:
        open_in_browser(path)
