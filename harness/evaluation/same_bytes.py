"""Equal bytes: what is the best index that fits into a share of the full model's, however it was made small?

A row of `summarise` is a pruner, a codec and a budget, so pruning, storing and both together can be compared here. What
looks at queries, and thresholds of a method's own, are left out as they are from ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pruners.core.budget import UNPRUNED
from pruners.core.codec_catalog import DEFAULT

SHARES = (0.01, 0.02, 0.05, 0.10)
"""Of the bytes of the full model, which stores all vectors as float16."""

ROUNDING = 1.05
"""A budget is rounded up to whole vectors: 5 % of 196 are 10, which is 5.1 %. So much more still counts as the same."""

BEST, PRUNING, STORING = "best", "pruning alone", "storing alone"
WAYS: dict[str, Callable[[dict[str, Any]], bool]] = {
    BEST: lambda row: True,
    PRUNING: lambda row: row["codec"] == DEFAULT and row["output"] != "quantised",
    STORING: lambda row: row["budget"] == UNPRUNED,
}


def same_bytes(rows: Sequence[dict[str, Any]], shares: Sequence[float] = SHARES) -> list[dict[str, Any]]:
    """For each share the bytes a page that it stands for, and by way the row that retains most within them (or None).

    `rows` are those of `summarise`, the full model first. Of rows that retain the same the smaller index counts.
    """
    full, *others = rows
    ranked = [row for row in others if row["rank"] is not None]
    found = []
    for share in shares:
        room = share * full["bytes_per_page"]
        fit = [row for row in ranked if fits(row["bytes_per_page"], room)]
        best = {
            way: max((row for row in fit if belongs(row)), key=_quality, default=None) for way, belongs in WAYS.items()
        }
        found.append({"share": share, "bytes_per_page": room, **best})
    return found


def fits(size: float, room: float) -> bool:
    """Whether an index of `size` bytes a page counts as one of `room`."""
    return size <= room * ROUNDING


def _quality(row: dict[str, Any]) -> tuple[float, float]:
    return row["retention"], -row["bytes_per_page"]
