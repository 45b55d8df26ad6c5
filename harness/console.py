"""Where the command line writes: one console for people (stderr), and one way to print a table or its JSON (stdout)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

people = Console(stderr=True, highlight=False)
output = Console(highlight=False)

NAME_WIDTH = 17  # the longest built-in method; a longer name goes on in the next line where there is no room for it


def print_rows(
    rows: Sequence[dict], columns: dict[str, str], *, title: str, as_json: bool, stacked: Sequence[str] = ()
) -> None:
    """Print `rows` as a table with the given columns (key -> heading), or all of them as JSON.

    Lists are joined by commas; in `stacked` columns they stand one below the other, all but the first dimmed.
    """
    if as_json:
        print(json.dumps(list(rows), indent=2, ensure_ascii=False))
        return
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    first, *_ = columns
    for heading in columns.values():
        table.add_column(heading, overflow="fold")
    table.columns[0].min_width = min(NAME_WIDTH, max((_width(row.get(first)) for row in rows), default=0))
    for row in rows:
        table.add_row(*(stack(row[key]) if key in stacked else cell(row.get(key)) for key in columns))
    output.print(table)


def stack(lines: Sequence[str]) -> str:
    """Lines of one cell: the first stands out."""
    first, *rest = map(cell, lines)
    return "\n".join([first, *(f"[dim]{line}[/]" for line in rest)])


def _width(value: object) -> int:
    """Of the longest line of a cell."""
    return max(map(len, map(str, value)), default=0) if isinstance(value, (list, tuple)) else len(str(value))


def cell(value: object) -> str:
    """A table cell: lists joined, nothing for None; square brackets escaped, since rich reads them as markup."""
    if value is None:
        return ""
    text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    return text.replace("[", r"\[")
