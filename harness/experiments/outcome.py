"""What an experiment found, and how it is written: a table as CSV, JSON and LaTeX, and a figure as SVG and PNG."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.drawing import latex
from harness.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENDINGS = ("csv", "tex", "svg", "png", "json")


@dataclass(frozen=True)
class Outcome:
    """`rows` are the table; `draw` fills a figure; `facts` are single figures; `notes` say what a reader must know."""

    rows: Sequence[Mapping[str, Any]]
    columns: Mapping[str, str]
    """What a person is shown of a row: key -> heading."""
    draw: Callable[[Figure], None] | None
    """None: a table that has no figure."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    latex: str | None = None
    """A layout of its own; None: the columns, one line a row."""


def write_outcome(folder: Path, name: str, outcome: Outcome, about: Mapping[str, Any], title: str = "") -> None:
    """Write all files of an outcome. The JSON file goes last: where it is, the others are whole."""
    from harness.drawing.figures import render

    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / f"{name}.csv", as_csv(outcome.rows).encode())
    caption = latex.escape(about.get("caption", name))
    plain = latex.from_columns(outcome.rows, outcome.columns, caption=caption, label=name)
    write_atomically(folder / f"{name}.tex", (outcome.latex or plain).encode())
    for ending, data in (render(outcome.draw, title) if outcome.draw else {}).items():
        write_atomically(folder / f"{name}.{ending}", data)
    record = {
        **about,
        "columns": outcome.columns,
        "facts": outcome.facts,
        "notes": list(outcome.notes),
        "rows_with_a_printed_figure": sum(any(key.startswith("paper") for key in row) for row in outcome.rows),
        "rows": list(outcome.rows),
    }
    text = json.dumps(record, indent=1, ensure_ascii=False, default=_plain)
    write_atomically(folder / f"{name}.json", text.encode() + b"\n")


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """One line a row. An interval becomes two columns, other lists are joined by blanks; what is absent is empty."""
    flat = [_flat(row) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name.endswith("interval") and value is not None:
            flat |= {f"{name}_low": value[0], f"{name}_high": value[1]}
        elif isinstance(value, (list, tuple)):
            flat[name] = " ".join(map(str, value))
        else:
            flat[name] = value
    return flat


def _plain(value: Any) -> Any:
    """numpy numbers as numbers, everything else that JSON does not know as text."""
    return value.item() if hasattr(value, "item") else str(value)
