"""Where the command line writes: one console for people (stderr), and one way to print a table or its JSON (stdout)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

people = Console(stderr=True, highlight=False)
output = Console(highlight=False)


def print_rows(rows: Sequence[dict], columns: dict[str, str], *, title: str, as_json: bool) -> None:
    """Print `rows` as a table with the given columns (key -> heading), or all of them as JSON."""
    if as_json:
        print(json.dumps(list(rows), indent=2, ensure_ascii=False))
        return
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for heading in columns.values():
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(cell(row.get(key)) for key in columns))
    output.print(table)


def cell(value: object) -> str:
    """A table cell: lists joined, nothing for None; square brackets escaped, since rich reads them as markup."""
    if value is None:
        return ""
    text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    return text.replace("[", r"\[")
