"""What `harness evaluate` prints of a run: a table for each budget, codecs by themselves, equal bytes, partners."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from harness.console import NAME_WIDTH, output, print_rows

if TYPE_CHECKING:
    from harness.evaluation.config import Config

LEGEND = (
    "retention: NDCG@5 in % of the full model's, mean over data sets. SR: Score Retention. kept: % of vectors. KB, ms: "
    "index size and CPU time of pruning a page. Equal ranks: the 95 % interval of the difference to the first of them "
    "contains 0. –: a diagnostic, unranked. !: an adaptive method missed its budget."
)
WITH_CODECS = " Ranks are among methods that one codec stores."


Figure = Callable[[dict[str, Any]], str]

FIGURES: dict[str, Figure] = {
    "NDCG@5": lambda row: f"{row['NDCG@5']:.4f}",
    "retention [95 %]": lambda row: escape(f"{row['retention']:.1f} [{row['low']:.1f}, {row['high']:.1f}]"),
    "SR": lambda row: f"{row['SR']:.3f}",
    "kept": lambda row: f"{row['kept']:.1f}" + ("!" if row["missed"] else ""),
    "KB": lambda row: f"{row['KB']:.2f}",
    "ms": lambda row: "" if row["ms"] is None else f"{row['ms']:.1f}",
}
BY_BYTES = {name: figure for name, figure in FIGURES.items() if name not in ("SR", "ms")}
"""With a column for the codec there is no room for all of them in 80 columns; `--json` has them."""


def show_run(settings: Config, rows: list[dict[str, Any]]) -> None:
    """One table a budget, best first. Methods that share the best rank are bold: none differs surely from the first."""
    from harness.evaluation.same_bytes import same_bytes
    from harness.runs.table import table_rows
    from pruners.core.budget import UNPRUNED

    full = rows[0]
    output.print(
        f"\n[bold]full model[/]: NDCG@5 {full['ndcg@5']:.4f}, {full['vectors_per_page']:.0f} vectors "
        f"({settings.profile}) and {full['bytes_per_page'] / 1000:.1f} KB a page"
    )
    shown = table_rows(rows)
    codecs = len({row["codec"] for row in rows}) > 1  # what `hpc` stores in a form of its own is no codec
    partnered = [row for row in shown if "partner of" in row]
    plain = [row for row in shown[1:] if row not in partnered]
    for budget in settings.budgets:
        _show_budget(f"budget {budget:.4g}", [row for row in plain if row["budget"] == budget], codecs)
    if alone := [row for row in plain if row["budget"] == UNPRUNED]:
        _show_budget("no vector pruned: what a codec does by itself", alone, codecs)
    if codecs:
        _show_same_bytes(same_bytes(rows))
    _show_partners(partnered)
    output.print(f"[dim]{LEGEND}{WITH_CODECS if codecs else ''}[/]")


def _show_budget(title: str, rows: list[dict[str, Any]], codecs: bool) -> None:
    from rich.table import Table

    table = Table(title=title, box=None, pad_edge=False, title_justify="left", header_style="dim")
    figures = BY_BYTES if codecs else FIGURES
    for heading in ("rank", "method", *(["codec"] if codecs else []), *figures):
        name = heading == "method"  # long ones go on in the next line: what tells two apart must be seen
        table.add_column(heading, justify="left" if name or heading == "codec" else "right", no_wrap=not name)
        table.columns[-1].overflow = "fold"
    table.columns[1].min_width = NAME_WIDTH
    for row in rows:
        table.add_row(
            str(row["rank"] or "–"),
            escape(row["pruner"]),
            *([escape(row["codec"])] if codecs else []),
            *(figures[name](row) for name in figures),
            style="bold" if row["rank"] == 1 else None,
        )
    output.print(table)
    output.print()


def _show_same_bytes(found: list[dict[str, Any]]) -> None:
    """What fits into a share of the full model's bytes: the best, and what either way gives by itself."""
    from harness.evaluation.same_bytes import WAYS

    columns = {"share": "bytes", "kb": "KB", **{way: way for way in WAYS}}
    shown = [
        {"share": f"{100 * at['share']:g} %", "kb": f"{at['bytes_per_page'] / 1000:.2f}"}
        | {way: "–" if at[way] is None else _combination(at[way]) for way in WAYS}
        for at in found
    ]
    title = "equal bytes: what retains most in this share of the full model's bytes"
    print_rows(shown, columns, title=title, as_json=False)
    output.print()


def _combination(row: dict[str, Any]) -> str:
    from pruners.core.budget import UNPRUNED

    at = "" if row["budget"] == UNPRUNED else f" at {row['budget']:.4g}"
    return f"{row['method']}{at}: {row['retention']:.1f}"


def _show_partners(rows: list[dict[str, Any]]) -> None:
    """Methods with a threshold of their own, each above the fixed-ratio methods at the same realised ratio."""
    if not rows:
        return
    title = "thresholds of their own, and fixed-ratio partners at the same realised ratio on every data set"
    output.print(f"[bold]{title}[/]")
    columns = {
        "method": "method",
        "kept": "kept",
        "ndcg": "NDCG@5",
        "retention": "retention \\[95 %]",
        "gap": "minus it",
    }
    shown = []
    for row in rows:
        gap = "{minus it:+.1f} [{gap low:+.1f}, {gap high:+.1f}]"
        shown.append(
            {
                "method": row["method"],
                "kept": f"{row['kept']:.2f}",
                "ndcg": f"{row['NDCG@5']:.4f}",
                "retention": f"{row['retention']:.1f} [{row['low']:.1f}, {row['high']:.1f}]",
                "gap": "" if row["gap low"] is None else gap.format_map(row),
            }
        )
    print_rows(shown, columns, title="", as_json=False)
    output.print()
