"""`harness reproduce`: measure a submission again, and say whether it came out the same; see `harness.reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from harness.console import people, print_rows
from harness.instructions import compute_with
from pruners.core.errors import PruneBoardError

if TYPE_CHECKING:
    from harness.submissions.reproduce import Reproduction

AVX2 = "Rows that are close may have been measured on another kind of processor: try --instructions avx2"


def reproduce(
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID…", help="Submissions, by their ids.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every submission that was measured.")] = False,
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="With --all: only so many of those that can be run here, others every time."),
    ] = None,
    pruner: Annotated[
        Path | None, typer.Option(help="The method's file, where a submission does not carry it; its hash must match.")
    ] = None,
    backbone: Annotated[str | None, typer.Option(help="Selector of a checkpoint that is no backbone's own.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder that holds benchmarks, each a folder of its name, that are not ours.")
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Write what came out the same into measured-again.json. For maintainers.")
    ] = False,
    by: Annotated[str | None, typer.Option(help="With --record: the maintainer who answers for it.")] = None,
    submissions: Annotated[Path | None, typer.Option(help="Folder of submissions. Default: the project's own.")] = None,
    out: Annotated[Path | None, typer.Option(help="Keep the runs and stores here. Default: nowhere.")] = None,
    store: Annotated[
        Path | None, typer.Option(help="Folder of stores to trust. Default: pages are encoded anew.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes. Default: one a core.")] = None,
    sandbox: Annotated[str, typer.Option(help="For methods that are not built in: on, auto or off.")] = "on",
    readable: Annotated[
        list[Path] | None, typer.Option(help="A file or folder that a method in the sandbox may read; repeatable.")
    ] = None,
    instructions: Annotated[
        str | None, typer.Option(help="avx2: round like processors that have no AVX-512. Default: what there is.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure submissions again from scratch, and compare them ranking by ranking: verified, or the first difference.

    Pages are encoded, methods calibrated with the recorded seed and window, pages pruned and scored. A method that is
    not built in runs from the source that its submission carries, in a sandbox. Exit status 1 if any did not come out
    the same; of --all those that cannot be run here, or come close but for rounding, are listed.
    """
    if instructions is not None:  # before any library is loaded
        compute_with(instructions)
    import harness
    from harness.progress import bar
    from harness.submissions.folder import own_folder
    from harness.submissions.measured_again import write_measured_again

    if bool(ids) == everything:
        raise PruneBoardError("name submissions by their ids, or --all of them")
    if record and not by:
        raise PruneBoardError('a record says who answers for it: --record --by "a maintainer"')
    found = []
    for one in harness.reproduce(
        ids or None,
        submissions=submissions,
        pruner=pruner,
        backbone=backbone,
        data=data,
        out=out,
        store=store,
        workers=workers,
        sandbox=sandbox,
        readable=readable or (),
        sample=sample,
        progress=None if as_json else bar,
        say=None if as_json else lambda text: people.print(escape(text), soft_wrap=True),
    ):
        found.append(one)
        if one.verified and record and by:
            folder = submissions or own_folder("name a folder with --submissions")
            write_measured_again(folder, {one.id: one.record(by)})
        elif not one.verified:
            told = escape(f"{one.id} {one.method}: {one.difference}")
            people.print(f"[bold red]{one.status}[/] {told}", soft_wrap=True)
    rows = [
        {
            "status": one.status,
            "id": one.id,
            "method": one.method,
            "backbone": one.backbone,
            "benchmark": one.benchmark,
            "rankings": one.rankings,
            "near ties": one.near_ties,
            "difference": one.difference,
        }
        for one in found
    ]
    shown = {name: name for name in ("status", "id", "method", "backbone", "benchmark", "rankings", "near ties")}
    print_rows(rows, shown, title="measured again", as_json=as_json)
    if instructions is None and any(one.status == "close" and _wider(one) for one in found):
        people.print(AVX2, soft_wrap=True)
    if any(one.status == "differs" or (ids and not one.verified) for one in found):
        raise typer.Exit(1)


def _wider(one: Reproduction) -> bool:
    """Whether it was measured here with AVX-512."""
    return one.environment is not None and "AVX512" in one.environment.platform
