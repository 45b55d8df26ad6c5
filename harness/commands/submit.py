"""`harness submit`: a run folder becomes submissions; the work is in `harness/submissions`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from harness.console import people, print_rows


def submit(
    run: Annotated[Path, typer.Argument(help="A run folder, as `harness evaluate` wrote it.")],
    submitter: Annotated[str, typer.Option(help="Who answers for the figures: a person or a group.")],
    account: Annotated[str | None, typer.Option(help="Your account: it alone may change or take it back.")] = None,
    method: Annotated[list[str] | None, typer.Option(help="A method of the run; repeatable. Default: all.")] = None,
    paper: Annotated[str | None, typer.Option(help="Link to where the method is published.")] = None,
    code: Annotated[str | None, typer.Option(help="Link to the method's code.")] = None,
    note: Annotated[str, typer.Option(help="Anything a reader must know.")] = "",
    backbone_name: Annotated[str | None, typer.Option(help="Name on the board. Default: the run's.")] = None,
    track: Annotated[str | None, typer.Option(help="If the declared one is wrong: trained, say.")] = None,
    reproduces: Annotated[str | None, typer.Option(help="Id of another's submission that this measures again.")] = None,
    replace: Annotated[
        str | None, typer.Option(help="Take back what you submitted of the same before, for this reason.")
    ] = None,
    with_source: Annotated[
        bool, typer.Option("--source/--no-source", help="Whether the text of your method's file goes along.")
    ] = True,
    date: Annotated[str | None, typer.Option(help="Day of submission, as 2026-11-16. Default: today.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of submissions. Default: the project's own.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Write a run's results as submissions that anyone can check: one for each method.

    Repeating it changes nothing: a submission is named by what was measured. `harness validate` checks it.
    """
    import harness
    from harness.submissions.folder import own_folder
    from harness.submissions.run_facts import FinishedRun

    done = harness.submit(
        run,
        submitter,
        account=account,
        methods=method or (),
        paper=paper,
        code=code,
        note=note,
        backbone_name=backbone_name,
        track=track,
        reproduces=reproduces,
        replace=replace,
        with_source=with_source,
        date=date,
        out=out,
        say=lambda text: people.print(escape(text), soft_wrap=True),
    )
    rows = [
        {
            "method": made.method,
            "id": made.id,
            "new": "written" if made.new else "was there",
            "replaces": made.replaces,
            "KB": made.kilobytes,
            "file": str(made.file),
        }
        for made in done
    ]
    folder, found = out or own_folder("name a folder with --out"), FinishedRun(run)
    headings = {"method": "method", "id": "id", "new": "", "KB": "KB", "replaces": "replaces"}
    print_rows(rows, headings, title=f"submissions in {folder}", as_json=as_json)
    left_out = [text for text in found.methods if text not in found.submittable]
    if left_out and not method:
        people.print(
            f"left out, since they have no budget in common: {', '.join(left_out)}", soft_wrap=True, markup=False
        )
    if not as_json:
        people.print(f"next: harness validate{'' if out is None else f' {folder}'}", soft_wrap=True, markup=False)
