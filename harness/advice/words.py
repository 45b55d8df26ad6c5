"""Advice in words, for the command line and for `print`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING

from harness.advice.rule import (
    GB,
    UNSURE,
    Asked,
    Candidate,
    WouldGive,
    bound,
    floored,
    size_of,
    size_words,
    time_words,
)
from pruners.core.budget import UNPRUNED

if TYPE_CHECKING:
    from harness.advice.advise import Advice, Option

MOST_ABLE, MOST = 3, 8
"""Runners-up in words: those that qualify, and all; a program is given every one."""


def in_words(advice: Advice) -> Iterator[str]:
    """The answer, line by line."""
    asked = advice.asked
    limits = [f"at most {asked.max_gb:g} GB"] if asked.max_gb is not None else []
    limits += [f"at most {asked.max_ms:g} ms a query"] if asked.max_ms is not None else []
    limits += ["vectors only"] if asked.vectors_only else []
    yield f"asked: keep {asked.keep:g} % of NDCG@5, {asked.pages:,.0f} pages" + "".join(f", {one}" for one in limits)
    if advice.chosen:
        yield f"take {name(advice.chosen.candidate)}"
        yield from (f"  {line}" for line in _details(advice.chosen, advice))
    else:
        yield "nothing qualifies"
        yield from (f"  {concession(one, asked, advice.scanned)}" for one in advice.would_give)
        if not advice.would_give:
            yield "  no row may be advised at all: " + _why_none(advice)
    able, fallen = advice.able[:MOST_ABLE], advice.fallen
    if shown := [*able, *fallen[: MOST - len(able)]]:
        yield "runners-up"
        yield from (f"  {_other(option, advice)}" for option in shown)
        if more := len(advice.others) - len(shown):
            yield f"  and {more} more: --json lists every row"
    basis = advice.basis
    counted = [f"{basis.data_sets} data set" + ("s" if basis.data_sets != 1 else "")]
    counted += [f"{basis.pages:,} pages"] if basis.pages else []
    counted += [f"{basis.queries:,} queries"] if basis.queries else []
    yield f"rests on {basis.source}: {basis.backbone} ({basis.kind}) on {basis.benchmark}, {', '.join(counted)}"
    mixed = " (mixed: only measured ones are advised)" if _is_mixed(advice) else ""
    yield "  rows: " + ", ".join(f"{count} {status}" for status, count in advice.statuses.items()) + mixed
    yield from (f"  {remark}" for remark in basis.remarks)
    yield "does not cover"
    yield from (f"  {limit}" for limit in advice.limits())


def _is_mixed(advice: Advice) -> bool:
    """Whether there are rows that may be advised beside such as never are, for want of a check."""
    return bool(set(advice.statuses) & set(UNSURE)) and bool(set(advice.statuses) - set(UNSURE))


def _details(option: Option, advice: Advice) -> Iterator[str]:
    row, cost = option.candidate, option.cost
    yield f"keeps {row.retention:.1f} % [{row.low:.1f}, {row.high:.1f}]; {row.status}"
    if cost is None:
        return
    once = f" and {row.shared_bytes:,.0f} once for all pages" if row.shared_bytes else ""
    yield f"index: {row.own_bytes:,.0f} bytes a page{once}, {size_words(cost.index_gb)} ({row.codec})"
    if cost.decoded_gb is not None:
        whole = f"{size_words(cost.decoded_gb)} if all of it is decoded to float32"
        yield f"memory: {size_words(cost.index_gb)} as stored, {whole}"
    if cost.prune_cpu_hours is not None:
        yield f"pruning: {cost.prune_cpu_hours:.3g} CPU hours, by the time a page took where it was measured"
    if cost.scan_ms is not None and advice.rate is not None:
        yield f"scan: {time_words(cost.scan_ms)} a query over {advice.scanned:,.0f} pages ({advice.rate.words})"
    if row.needs:
        yield f"needs, beside the vectors: {', '.join(row.needs)}"


def _other(option: Option, advice: Advice) -> str:
    row = option.candidate
    size = "size unknown" if option.cost is None else size_words(option.cost.index_gb)
    why = "; ".join(fault.words for fault in option.faults)
    if not why:
        chosen = advice.chosen.candidate if advice.chosen else row
        more = size_of(row, advice.asked.pages) - size_of(chosen, advice.asked.pages)
        why = "qualifies, and is larger" if more > 0 else _of_equal_size(row, chosen)
    kept = "" if row.retention is None else f", {row.retention:.1f} %"
    return f"{name(row)}{kept}, {size}: {why}"


def _of_equal_size(row: Candidate, chosen: Candidate) -> str:
    return "qualifies, same size, " + ("lower bound" if row.low != chosen.low else "same bound")


def _why_none(advice: Advice) -> str:
    reasons = dict.fromkeys(option.candidate.barred for option in advice.others)
    return "; ".join(reason for reason in reasons if reason) or "there are none"


def concession(one: WouldGive, asked: Asked, scanned: float) -> str:
    """What could be had for less."""
    row = one.candidate
    size = size_of(row, asked.pages) / GB
    asks = {
        "keep": f"--keep {floored(bound(row))}",
        "size": f"--max-gb {rounded_up(size):g}",
        "time": _more_time(row, asked, scanned),
        "signals": f"methods that read {', '.join(row.needs) or 'more than vectors'}",
    }
    given = " with ".join(asks[kind] for kind in one.given_up)
    return f"{given}: {name(row)} keeps {floored(bound(row))} % in {size_words(size)}"


def _more_time(row: Candidate, asked: Asked, scanned: float) -> str:
    if row.scan_ms is None or asked.max_ms is None:
        return "no --max-ms"
    able = math.floor(scanned * asked.max_ms / row.scan_ms)
    first = f" (or --scan {able}: a first stage that hands over so many pages)" if able else ""
    return f"--max-ms {rounded_up(row.scan_ms):g}{first}"


def name(row: Candidate) -> str:
    """The method, its codec, and its budget."""
    return f"{row.text} at {100 * row.budget:.3g} %" if row.budget < UNPRUNED else row.text


def rounded_up(value: float) -> float:
    """To three digits, never down: what is printed as enough must be enough."""
    if value <= 0:
        return 0.0
    exact = Decimal(repr(value))
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - 2), ROUND_CEILING))
