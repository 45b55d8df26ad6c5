"""The `harness` command: it only gathers the commands and turns a user's mistake into one line and exit status 2."""

from __future__ import annotations

import sys

import typer
from rich.markup import escape

from harness.commands.bench import app as bench
from harness.commands.encode import encode
from harness.commands.import_vectors import import_vectors
from harness.console import people
from pruners.core.errors import PruneBoardError

app = typer.Typer(
    help="Measure what pruning a multi-vector page index costs, and show it on a leaderboard.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.command()(encode)
app.command("import-vectors")(import_vectors)
app.add_typer(bench, name="bench")


def main() -> None:
    try:
        app()
    except PruneBoardError as error:
        people.print(f"[bold red]error[/]: {escape(str(error))}", soft_wrap=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
