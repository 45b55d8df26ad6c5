"""The `harness` command: it only gathers the commands and turns a user's mistake into one line and exit status 2."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer
from rich.markup import escape

from harness.commands import (
    advise,
    bench,
    calibrate,
    check,
    encode,
    evaluate,
    experiment,
    explain,
    import_,
    import_vectors,
    index,
    leaderboard,
    listing,
    new_pruner,
    pin,
    reproduce,
    show,
    submit,
    validate,
    verify_backbone,
)
from harness.console import people
from harness.files import in_words
from pruners.core.errors import PruneBoardError

INTERRUPTED = 130
"""The exit status of whoever was stopped by Ctrl-C, as shells count."""

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

app.command()(evaluate.evaluate)
app.command()(explain.explain)
app.command()(show.show)
app.command()(advise.advise)
app.command()(index.index)
app.command()(calibrate.calibrate)
app.command()(experiment.experiment)
app.command()(encode.encode)
app.command("import")(import_.import_pages)
app.command("import-vectors")(import_vectors.import_vectors)
app.command()(check.check)
app.command("verify-backbone")(verify_backbone.verify_backbone)
app.command()(submit.submit)
app.command()(validate.validate)
app.command()(pin.pin)
app.command()(reproduce.reproduce)
app.command()(leaderboard.leaderboard)
app.command("new-pruner")(new_pruner.new_pruner)
app.add_typer(listing.app, name="list")
app.add_typer(bench.app, name="bench")


def _say_version(wanted: bool) -> None:
    if wanted:
        import harness

        print(f"pruneboard {harness.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_say_version, help="Print the version.")] = False,
) -> None:
    """Measure what pruning a multi-vector page index costs, and show it on a leaderboard."""


def run() -> int:
    """Run the command that the arguments name; the exit status."""
    for stream in (sys.stdout, sys.stderr):  # a terminal of another alphabet, or a name that is no text: say it anyhow
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except (PruneBoardError, OSError) as error:
        told = str(error) if isinstance(error, PruneBoardError) else in_words(error)
        people.print(f"[bold red]error[/]: {escape(told)}", soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        return _interrupted()
    except SystemExit as end:
        if end.code == INTERRUPTED:  # by typer, which says nothing
            return _interrupted()
        if not isinstance(end.code, int | None):
            raise
        return end.code or 0
    return 0


def _interrupted() -> int:
    people.print("interrupted; what was finished is kept, and the same command goes on with it")
    return INTERRUPTED


def main() -> None:
    sys.exit(run())


if __name__ == "__main__":
    main()
