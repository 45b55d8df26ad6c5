"""The columns of the board: what each is called, what it means, and how a row shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from leaderboard.groups import AgainKind
from leaderboard.lines import Line
from leaderboard.rows import Row
from leaderboard.views import View
from leaderboard.words import NONE, fixed, percent, signed

Show = Callable[[Line, Row], str]


@dataclass(frozen=True)
class Column:
    """`first` is the direction a first click sorts in; `words` columns hold text, the others numbers."""

    key: str
    label: str
    hint: str
    show: Show
    first: str = "descending"
    words: bool = False
    default: bool = True


def _rank(rank: int | None, line: Line) -> str:
    if rank is None:
        return NONE
    return f"({rank})" if line.reported else str(rank)


def _retention(line: Line, row: Row) -> str:
    if not row.complete:
        return row.coverage
    between = f" [{fixed(row.interval.low)}, {fixed(row.interval.high)}]" if row.interval else ""
    return fixed(row.retention) + between


def _area(line: Line, row: Row) -> str:
    between = f" [{fixed(line.area_interval.low)}, {fixed(line.area_interval.high)}]" if line.area_interval else ""
    return fixed(line.area) + between


def _ndcg(cutoff: str) -> Show:
    return lambda line, row: fixed(row.ndcg.get(cutoff), 2 if line.reported else 4)


def _part(name: str) -> Show:
    return lambda line, row: fixed(row.parts.get(name))


def _local(line: Line, row: Row) -> str:
    """What a run of one's own differs by."""
    gaps = [again.differences[row.budget] for again in line.others(AgainKind.local) if row.budget in again.differences]
    if not gaps:
        return NONE
    gap = gaps[-1]
    return signed(gap.value) + (f" [{signed(gap.low)}, {signed(gap.high)}]" if gap.low < gap.high else "")


COLUMNS = (
    Column(
        "rank",
        "Rank",
        "Rank among methods of the same track; tied methods share it; in brackets: a paper's figures, in plain order",
        lambda li, r: _rank(r.rank, li),
        "ascending",
    ),
    Column("method", "Method", "The pruning method", lambda li, r: li.label, "ascending", words=True),
    Column("codec", "Codec", "How vectors are stored", lambda li, r: li.stored, "ascending", words=True),
    Column("retention", "Retention", "NDCG@5 in % of the full model's [95 % interval]", _retention),
    Column("local", "Your run", "What a run of your own differs by, in points of retention; it takes no rank", _local),
    Column(
        "kb",
        "KB",
        "Index kilobytes a page",
        lambda li, r: fixed(None if r.bytes is None else r.bytes / 1000, 2),
        "ascending",
    ),
    Column(
        "track",
        "Track",
        "What kind of index it leaves",
        lambda li, r: li.method.track.value.removeprefix("query-agnostic "),
        "ascending",
        words=True,
    ),
    Column("area", "Area", "Headline over budgets: area under retention against log budget", _area),
    Column("ndcg5", "NDCG@5", "", _ndcg("5")),
    Column(
        "sr",
        "SR",
        "Score Retention: what is left of a gold pair's MaxSim",
        lambda li, r: fixed(r.score_retention, 2 if li.reported else 3),
    ),
    Column(
        "keep",
        "Keep %",
        "Vectors really kept; !: an adaptive method missed its budget",
        lambda li, r: percent(r.realised) + ("!" if r.drift else ""),
        "ascending",
    ),
    Column("vectors", "Vectors", "Vectors a page", lambda li, r: fixed(r.vectors), "ascending", default=False),
    Column("ms", "ms", "Pruning a page, all budgets", lambda li, r: fixed(r.milliseconds), "ascending"),
    Column("v1", "v1", "Retention on the first edition", _part("v1")),
    Column("v2", "v2", "Retention on the second edition", _part("v2")),
    Column("status", "Status", "How far it was checked", lambda li, r: li.entry.status, "ascending", words=True),
    Column(
        "date",
        "Date",
        "Day of submission",
        lambda li, r: li.entry.submission.origin.submitted.isoformat(),
        words=True,
        default=False,
    ),
    Column(
        "overall",
        "Overall",
        "Rank among the methods of all tracks",
        lambda li, r: _rank(r.overall, li),
        "ascending",
        default=False,
    ),
    Column("ndcg1", "NDCG@1", "", _ndcg("1"), default=False),
    Column("ndcg10", "NDCG@10", "", _ndcg("10"), default=False),
    Column("ndcg50", "NDCG@50", "", _ndcg("50"), default=False),
    Column("ndcg100", "NDCG@100", "", _ndcg("100"), default=False),
)

ALWAYS = ("rank", "method", "retention")
PHONE = ("rank", "method", "retention", "local", "kb")
"""What a narrow window shows at first."""


def column_facts() -> dict[str, dict[str, Any]]:
    """What the board's script knows of every column: its hint, how a first click sorts, and whether it waits hidden."""
    return {
        c.key: {"hint": c.hint, "up": c.first == "ascending", "extra": not c.default, "phone": c.key in PHONE}
        for c in COLUMNS
    }


def columns_of(view: View) -> list[Column]:
    """The columns that have something to show in a view."""
    pairs = [(line, row) for line in view.lines for row in line.rows.values()]
    able = [c for c in COLUMNS if c.key != "codec" or len(view.codecs) > 1]
    return [c for c in able if c.key in ALWAYS or any(c.show(line, row).strip("()") != NONE for line, row in pairs)]
