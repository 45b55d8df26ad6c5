"""`harness leaderboard`: only options and what a person sees; the work is in the package `leaderboard`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from harness.console import output, people


def leaderboard(
    out: Annotated[Path, typer.Option(help="Folder of the site; an earlier build in it is replaced.")] = Path("site"),
    submissions: Annotated[Path | None, typer.Option(help="Folder of submissions. Default: the project's own.")] = None,
    runs: Annotated[
        list[Path] | None, typer.Option(help="A run folder, or a folder of them, shown beside; repeatable.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(help="Address of the published site, for preview pictures; links stay relative.")
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of words.")] = False,
) -> None:
    """Build the leaderboard, a static site that needs no server.

    The same submissions give the same bytes. `--runs` adds runs of one's own, as they would look if submitted.
    """
    from harness.progress import bar, quiet
    from harness.submissions.entry import in_checkout, own_folder
    from leaderboard.gather import gather
    from leaderboard.site import build

    if submissions is None and runs and not in_checkout():
        people.print("your runs alone: the project's submissions lie in its repository", soft_wrap=True)
    else:
        submissions = submissions or own_folder(
            "show runs of your own with --runs, or name a folder with --submissions"
        )
    found = gather(submissions, runs or [])
    built = build(found, out, base_url, quiet if as_json else bar)
    for problem in found.left_out:
        people.print(f"[bold]left out[/] {escape(f'{problem.file}: {problem.field}: {problem.what}')}", soft_wrap=True)
    if as_json:
        print(
            json.dumps(
                {
                    "folder": str(out),
                    "submissions": len(found.entries),
                    "left_out": len({p.file for p in found.left_out}),
                    "pages": built.pages,
                    "bytes": built.size,
                }
            )
        )
    else:
        kilobytes = f"{built.size / 1000:.0f} KB"
        output.print(
            f"{len(found.entries)} submissions, {built.pages} pages, {kilobytes}: {escape(str(out / 'index.html'))}"
        )
    if open_:
        import webbrowser

        if not webbrowser.open((out / "index.html").resolve().as_uri()):
            people.print("no browser could be opened", soft_wrap=True)
