"""`harness experiment join`: what a person sees of it; the work is in `harness/experiments/join.py`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.markup import escape

from harness.benchmarks.embedded import NANO_NOTE
from harness.console import output, people
from pruners.core.errors import PruneBoardError

OPTIONS = ("name", "folders", "out", "as_json", "quiet")
"""What a join listens to: figures are read, nothing is measured."""


def experiment_join(context: typer.Context, folders: Sequence[Path], out: Path | None, as_json: bool) -> None:
    given = [p for p in context.command.params if str(p.name) not in OPTIONS and _typed(context, str(p.name))]
    if given:
        raise PruneBoardError(f"join measures nothing and takes only --out, --json and --quiet, not {given[0].opts[0]}")
    if not folders:
        raise PruneBoardError("which folders? harness experiment join experiments/* joins all that are finished there")
    from harness.experiments.join import DOCUMENT, join

    place = out or Path("experiments/joint")
    done = join(folders, place)
    if as_json:
        print(json.dumps([joined.record() for joined in done], indent=1, ensure_ascii=False))
        return
    for note in dict.fromkeys(note for joined in done for note in joined.notes):
        people.print(f"[dim]{escape(note)}[/]", soft_wrap=True)
    for joined in done:
        if joined.left_out:
            people.print(f"[yellow]left out[/] {joined.item.name}: {escape(joined.left_out)}", soft_wrap=True)
        else:
            endings = ",".join(sorted(joined.files))
            output.print(f"{joined.item.name}: {escape(str(place / joined.item.name))}.{{{endings}}}", soft_wrap=True)
    if any(source["backbone"]["name"] == "nano" for joined in done for source in joined.record().get("joined", ())):
        people.print(f"[dim]{NANO_NOTE}[/]", soft_wrap=True)
    output.print(f"all of them: {escape(str(place / DOCUMENT))}", soft_wrap=True)


def _typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
