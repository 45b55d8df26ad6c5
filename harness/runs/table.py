"""A run's figures as a person is shown them: the rows of the terminal's tables, of a DataFrame and of LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.drawing import latex

CODEC = "codec"
"""A column only where vectors are stored in more than one way."""
COLUMNS = ("budget", "rank", "method", "NDCG@5", "retention", "low", "high", "SR", "kept", "KB", "ms", "missed")
"""Retention in % of the full model's with its 95 % interval; kept in % of vectors; KB and ms a page; `missed`: an
adaptive method missed its budget."""
PARTNER = ("partner of", "minus it", "gap low", "gap high")
"""Only where a method has a threshold of its own: the difference in retention to a partner at the same ratio."""


def table_rows(rows: Sequence[dict]) -> list[dict[str, Any]]:
    """The rows of `summarise`, the full model first, in a person's units."""
    shown = []
    for row in rows:
        low, high = row.get("retention_interval", (None, None))
        values = (
            *(row["budget"], row["rank"], row["method"], row["ndcg@5"], row["retention"], low, high),
            *(row["score_retention"], 100 * row["realised"], row["bytes_per_page"] / 1000),
            *(row.get("prune_ms_per_page"), row.get("drift", False)),
        )
        found = dict(zip(COLUMNS, values, strict=True)) | {"pruner": row["pruner"], CODEC: stored_as(row)}
        if "own_threshold" in row:
            gap = row["minus_partner"] or (None, None, None)
            found |= dict(zip(PARTNER, (row["partner_of"], *gap), strict=True))
        shown.append(found)
    return shown


def stored_as(row: dict) -> str:
    """The codec; a quantised method stores vectors in a form of its own."""
    return "own" if row["output"] == "quantised" else row["codec"]


def as_latex(rows: Sequence[dict[str, Any]], caption: str, label: str) -> str:
    """The same as a booktabs table; of each budget the methods that share the first rank are bold."""
    names = ("budget", "method", "NDCG@5", "retention", "95 %", "SR", "kept, %", "KB")
    body: list[Sequence[str] | str] = []
    before = rows[0]["budget"] if rows else None
    for row in rows:
        if row["budget"] != before:
            body.append(r"\midrule")
            before = row["budget"]
        method = latex.escape(row["method"])
        number = latex.number
        span = "--" if row["low"] is None else f"[{number(row['low'], 1)}, {number(row['high'], 1)}]"
        body.append(
            [
                f"{row['budget']:.4g}",
                latex.bold(method) if row["rank"] == 1 else method,
                number(row["NDCG@5"], 4),
                number(row["retention"], 1),
                span,
                number(row["SR"], 3),
                number(row["kept"], 1),
                number(row["KB"], 2),
            ]
        )
    head = [" & ".join(latex.bold(latex.escape(name)) for name in names) + r" \\"]
    return latex.table(body, head, align="rlrrrrrr", caption=latex.escape(caption), label=label)
