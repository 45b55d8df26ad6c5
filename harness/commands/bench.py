"""`harness bench NAME`: measurements of the harness itself against its peers, side by side in one run."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.console import people, print_rows

app = typer.Typer(help="Measure the harness against its peers, in one run on this machine.", no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Keeps `capture` a subcommand while it is the only one."""


@app.command()
def capture(
    long: Annotated[bool, typer.Option(help="Also 12k tokens.")] = False,
    tokens: Annotated[list[int] | None, typer.Option(help="These lengths instead (repeatable).")] = None,
    repeat: Annotated[int, typer.Option(help="Forward passes a measurement; the fastest counts.")] = 2,
    threads: Annotated[int, typer.Option(help="Threads a process; 0 for all cores.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Time and peak memory of capturing attention: plain SDPA, eager all layers, eager a layer at a time, ours."""
    from harness.bench.capture import LENGTHS, LONG, measure
    from harness.progress import bar

    lengths = tokens or [*LENGTHS, *([LONG] if long else [])]
    rows = measure(lengths, repeat=repeat, threads=threads, progress=bar)
    columns = {
        "tokens": "tokens",
        "way": "way",
        "seconds": "CPU s",
        "time_ratio": "x time",
        "peak_mb": "peak MB",
        "peak_ratio": "x peak",
        "extra_mb": "extra MB",
        "extra_ratio": "x extra",
        "note": "",
    }
    print_rows(rows, columns, title="capturing attention (ratios to plain SDPA)", as_json=json)
    if not json:
        people.print("extra: above the process with its model loaded, before the first forward pass")
