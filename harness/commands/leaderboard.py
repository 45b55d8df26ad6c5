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
    publish_ready: Annotated[
        Path | None, typer.Option(help="Build into this folder, ready for GitHub Pages or a static Hugging Face Space.")
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of words.")] = False,
) -> None:
    """Build the leaderboard, a static site that needs no server.

    The same submissions give the same bytes. `--runs` adds runs of one's own, as they would look if submitted.
    """
    import harness
    from harness.progress import bar
    from harness.submissions.problems import printable

    site = harness.leaderboard(
        out := publish_ready or out,
        submissions=submissions,
        runs=runs or (),
        base_url=base_url,
        publish=publish_ready is not None,
        progress=None if as_json else bar,
        say=lambda text: people.print(text, soft_wrap=True),
    )
    for problem in site.left_out:
        said = printable(f"{problem.file}: {problem.field}: {problem.what}", 1000)
        people.print(f"[bold]left out[/] {escape(said)}", soft_wrap=True)
    if as_json:
        print(
            json.dumps(
                {
                    "folder": str(out),
                    "submissions": site.submissions,
                    "left_out": len({p.file for p in site.left_out}),
                    "pages": site.pages,
                    "bytes": site.bytes,
                }
            )
        )
    else:
        kilobytes = f"{site.bytes / 1000:.0f} KB"
        output.print(f"{site.submissions} submissions, {site.pages} pages, {kilobytes}: {escape(str(site.index))}")
    if open_:
        import webbrowser

        if not webbrowser.open(site.index.resolve().as_uri()):
            people.print("no browser could be opened", soft_wrap=True)
