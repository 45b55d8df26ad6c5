"""The rule of advice, over plain rows: who qualifies, in which order, and what would have to give if nobody does.

A row qualifies if the *lower* bound of its 95 % interval keeps what is asked and no limit is passed. Of those the one
with the fewest bytes a page is advised; of equal bytes the one with the higher bound, then the one whose text comes
first. `leaderboard/static/advise.js` has the same rule for a board's sliders; a test in a browser holds them together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

Kind = Literal["barred", "keep", "size", "time", "signals"]
GB = 1e9


@dataclass(frozen=True)
class Candidate:
    """A method with its codec at a budget, as it was measured: `text` is what `--pruner` takes, `sap | int8`."""

    text: str
    budget: float
    bytes_per_page: float | None
    retention: float | None
    low: float | None
    """Bounds of the 95 % interval of retention; none where a paper gives a figure alone."""
    high: float | None
    status: str
    codec: str = "float16"
    vectors_per_page: float | None = None
    prune_ms: float | None = None
    needs: tuple[str, ...] = ()
    """What it reads beside the vectors: attention signals, the patch grid."""
    scan_ms: float | None = None
    """Expected time of one query, if there is a rate to expect it from."""
    barred: str = ""
    """Why it is never advised, whatever is asked."""


@dataclass(frozen=True)
class Asked:
    """What must be kept, of how many pages, and within which limits."""

    keep: float
    """Retention of NDCG@5, in % of the full model's."""
    pages: float
    max_gb: float | None = None
    max_ms: float | None = None
    vectors_only: bool = False
    """Whether nothing but the vectors is at hand, so that methods which read attention or the grid are out."""


class Fault(NamedTuple):
    """Why a row is not advised."""

    kind: Kind
    words: str


class WouldGive(NamedTuple):
    """What could be had if one thing, or several, were asked for less."""

    given_up: tuple[Kind, ...]
    candidate: Candidate


def why_barred(status: str, track: str, coverage: str | None, bounded: bool, sized: bool) -> str:
    """Why a row may never be advised; empty if it may. `coverage`: 13/14, where data sets are missing."""
    if track == "diagnostic":
        return "diagnostic: it sees the queries"
    if track == "trained":
        return "trained: it changes the model, and is not ranked with the others"
    if status == "reported":
        return "reported: a paper's figure, without an interval; nobody has measured it here"
    if status == "unpinned":
        return "unpinned: no maintainer has compared its data and full model with their source"
    if coverage is not None:
        return f"data sets are missing: {coverage}"
    if not bounded:
        return "it has no interval"
    return "" if sized else "its bytes a page are not known"


def faults(candidate: Candidate, asked: Asked) -> tuple[Fault, ...]:
    """All that speaks against a row; nothing if it qualifies."""
    if candidate.barred:
        return (Fault("barred", candidate.barred),)
    low, size = bound(candidate), size_of(candidate) * asked.pages
    found = []
    if low < asked.keep:
        mean = candidate.retention is not None and candidate.retention >= asked.keep
        also = f", though its mean, {candidate.retention:.1f}, is not" if mean else ""
        found.append(Fault("keep", f"its lower bound, {floored(low)}, is below {asked.keep:g}{also}"))
    if asked.max_gb is not None and size > asked.max_gb * GB:
        found.append(Fault("size", f"{size_words(size / GB)} is more than {size_words(asked.max_gb)}"))
    if asked.max_ms is not None and candidate.scan_ms is None:
        found.append(Fault("time", "how long its scan takes is not known"))
    elif asked.max_ms is not None and candidate.scan_ms is not None and candidate.scan_ms > asked.max_ms:
        found.append(Fault("time", f"{time_words(candidate.scan_ms)} a query is more than {time_words(asked.max_ms)}"))
    if asked.vectors_only and candidate.needs:
        found.append(Fault("signals", f"it reads more than the vectors: {', '.join(candidate.needs)}"))
    return tuple(found)


def floored(low: float) -> str:
    """A bound with one digit, never rounded up: what is printed is kept."""
    return f"{math.floor(10 * low) / 10:.1f}"


def size_words(gb: float) -> str:
    return f"{gb / 1000:.3g} TB" if gb >= 1000 else f"{gb:.3g} GB"


def time_words(ms: float) -> str:
    return f"{ms / 1000:.3g} s" if ms >= 1000 else f"{ms:.3g} ms"


def bound(candidate: Candidate) -> float:
    """The lower bound of a row that is not barred."""
    assert candidate.low is not None, "a row without one is barred"
    return candidate.low


def size_of(candidate: Candidate) -> float:
    """Bytes a page of a row that is not barred."""
    assert candidate.bytes_per_page is not None, "a row without them is barred"
    return candidate.bytes_per_page


def by_cost(candidate: Candidate) -> tuple[float, float, str, float]:
    """The order of advice: fewest bytes, then the higher bound, then the text."""
    return size_of(candidate), -bound(candidate), candidate.text, candidate.budget


def by_bound(candidate: Candidate) -> tuple[float, float, str, float]:
    """The order of what comes nearest: the highest bound, then the fewest bytes, then the text."""
    return -bound(candidate), size_of(candidate), candidate.text, candidate.budget


def choose(candidates: Iterable[Candidate], asked: Asked) -> Candidate | None:
    """What is advised."""
    return min((one for one in candidates if not faults(one, asked)), key=by_cost, default=None)


def would_give(candidates: Sequence[Candidate], asked: Asked) -> list[WouldGive]:
    """Where nothing qualifies: what each single concession brings; if none does, what several together do."""
    found = [WouldGive((kind,), best) for kind in _limits(asked) if (best := choose(candidates, _without(asked, kind)))]
    if nearest := _nearest(candidates, asked):
        found.insert(0, WouldGive(("keep",), nearest))
    if found or not (limits := _limits(asked)):
        return found
    free = _without(asked, *limits)
    if best := choose(candidates, free):
        return [WouldGive(limits, best)]
    return [WouldGive(("keep", *limits), nearest)] if (nearest := _nearest(candidates, free)) else []


def _nearest(candidates: Iterable[Candidate], asked: Asked) -> Candidate | None:
    """The highest bound within the limits."""
    inside = (one for one in candidates if {fault.kind for fault in faults(one, asked)} <= {"keep"})
    return min(inside, key=by_bound, default=None)


def _limits(asked: Asked) -> tuple[Kind, ...]:
    given: dict[Kind, bool] = {
        "size": asked.max_gb is not None,
        "time": asked.max_ms is not None,
        "signals": asked.vectors_only,
    }
    return tuple(kind for kind, there in given.items() if there)


def _without(asked: Asked, *kinds: Kind) -> Asked:
    return replace(
        asked,
        max_gb=None if "size" in kinds else asked.max_gb,
        max_ms=None if "time" in kinds else asked.max_ms,
        vectors_only=asked.vectors_only and "signals" not in kinds,
    )


def front(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The rows that can be advised by what is kept and by size: of each, no cheaper one has as high a bound."""
    found: list[Candidate] = []
    for one in sorted((one for one in candidates if not one.barred), key=by_cost):
        if not found or bound(one) > bound(found[-1]):
            found.append(one)
    return found
