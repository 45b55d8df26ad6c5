"""`harness verify-backbone`: a preflight of a few minutes before a long run. The work is in `harness/verification/`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from harness.console import people


def verify_backbone(
    backbone: Annotated[str, typer.Argument(help="Name, name=folder, name=id@revision, or your_file.py.")],
    task: Annotated[
        str | None, typer.Option(help="Task to measure; default MTEB's smallest (TabFQuAD, 70 pages).")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cuda, mps or cpu; chosen by itself.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16, float16; MTEB's ColPali is float16.")] = None,
    max_visual_tokens: Annotated[int | None, typer.Option(help="At most so many visual tokens a page.")] = None,
    store: Annotated[
        Path | None, typer.Option(help="Folder of stores; default $PRUNEBOARD_STORES or the cache.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File for the report (JSON); default: in the cache.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Check that a backbone is what it says: tensors, vectors, signals, prompts, and MTEB's published figure.

    Prints a report that can be pasted into an issue, and keeps it. Offline it does all that needs no data. Exit
    status 1 if a check fails.
    """
    import harness
    from harness.progress import bar
    from harness.verification import report as reports

    colours = {reports.PASSED: "green", reports.FAILED: "bold red", reports.NOT_DONE: "yellow"}
    report = harness.verify_backbone(
        backbone,
        task=task,
        device=device,
        dtype=dtype,
        max_visual_tokens=max_visual_tokens,
        store=store,
        progress=bar,
        say=lambda c: people.print(
            f"[{colours[c.verdict]}]{c.verdict}[/] {c.name}: {escape(c.detail)}", soft_wrap=True
        ),
    )
    path = report.save(out or reports.folder() / reports.file_name(report))
    print(json.dumps(asdict(report), indent=2, ensure_ascii=False) if as_json else report.text())
    people.print(f"kept in {escape(str(path))}", soft_wrap=True)
    if report.failed:
        raise typer.Exit(1)
