"""The rule of advice, over plain rows: who qualifies, in which order, and what would have to give if nobody does.

A row qualifies if the *lower* bound of its 95 % interval keeps what is asked and no limit is passed. Of those the one
with the smallest index is advised; of equal size the one with the higher bound, then the one whose text comes first.
The size is that of the corpus that is asked about: a codebook of all pages is there once, however many they are.
`leaderboard/static/advise.js` has the same rule for a board's sliders; a test in a browser holds them together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

Kind = Literal["barred", "keep", "size", "time", "signals"]
GB = 1e9
UNSURE = ("reported", "unpinned")
"""Of status, whose rows are never advised."""


@dataclass(frozen=True)
class Candidate:
    """A method with its codec at a budget, as it was measured: `text` is what `--pruner` takes, `sap | int8`."""

    text: str
    budget: float
    own_bytes: float | None
    """Of a page, without what all pages share."""
    retention: float | None
    low: float | None
    """Bounds of the 95 % interval of retention; none where a paper gives a figure alone."""
    high: float | None
    status: str
    codec: str = "float16"
    shared_bytes: float = 0.0
    """Of the index, once for all pages: codebooks, rotations."""
    vectors_per_page: float | None = None
    width: int | None = None
    """Numbers of a vector as it is scanned."""
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
    low, size = bound(candidate), size_of(candidate, asked.pages) / GB
    found = []
    if low < asked.keep:
        mean = candidate.retention is not None and candidate.retention >= asked.keep
        also = f", though its mean, {candidate.retention:.1f}, is not" if mean else ""
        found.append(Fault("keep", f"its lower bound, {floored(low)}, is below {asked.keep:g}{also}"))
    if asked.max_gb is not None and size > asked.max_gb:  # in GB: 2,010,000,000 bytes are not more than 2.01
        found.append(Fault("size", f"{_more(size, asked.max_gb, size_words)}"))
    if asked.max_ms is not None and candidate.scan_ms is None:
        found.append(Fault("time", "how long its scan takes is not known"))
    elif asked.max_ms is not None and candidate.scan_ms is not None and candidate.scan_ms > asked.max_ms:
        found.append(Fault("time", f"{_more(candidate.scan_ms, asked.max_ms, time_words)} a query"))
    if asked.vectors_only and candidate.needs:
        found.append(Fault("signals", f"it reads more than the vectors: {', '.join(candidate.needs)}"))
    return tuple(found)


def floored(low: float) -> str:
    """A bound with one digit, never rounded up: what is printed is kept."""
    return f"{math.floor(10 * low) / 10:.1f}"


def _more(value: float, limit: float, words: Callable[..., str]) -> str:
    """With as many digits as it takes to see the difference."""
    digits = next((some for some in range(3, 17) if words(value, some) != words(limit, some)), 17)
    return f"{words(value, digits)} is more than {words(limit, digits)}"


def size_words(gb: float, digits: int = 3) -> str:
    return f"{gb / 1000:.{digits}g} TB" if gb >= 1000 else f"{gb:.{digits}g} GB"


def time_words(ms: float, digits: int = 3) -> str:
    return f"{ms / 1000:.{digits}g} s" if ms >= 1000 else f"{ms:.{digits}g} ms"


def bound(candidate: Candidate) -> float:
    """The lower bound of a row that is not barred."""
    assert candidate.low is not None, "a row without one is barred"
    return candidate.low


def size_of(candidate: Candidate, pages: float) -> float:
    """Bytes of the index of a row that is not barred."""
    assert candidate.own_bytes is not None, "a row without them is barred"
    return candidate.own_bytes * pages + candidate.shared_bytes


def by_cost(candidate: Candidate, pages: float) -> tuple[float, float, str, float]:
    """The order of advice: the smallest index, then the higher bound, then the text."""
    return size_of(candidate, pages), -bound(candidate), candidate.text, candidate.budget


def by_bound(candidate: Candidate, pages: float) -> tuple[float, float, str, float]:
    """The order of what comes nearest: the highest bound, then the smallest index, then the text."""
    return -bound(candidate), size_of(candidate, pages), candidate.text, candidate.budget


def choose(candidates: Iterable[Candidate], asked: Asked) -> Candidate | None:
    """What is advised."""
    able = (one for one in candidates if not faults(one, asked))
    return min(able, key=lambda one: by_cost(one, asked.pages), default=None)


def would_give(candidates: Sequence[Candidate], asked: Asked) -> list[WouldGive]:
    """Where nothing qualifies: what each single concession brings; if none does, what several together do."""
    found = [WouldGive((kind,), best) for kind in _limits(asked) if (best := choose(candidates, _without(asked, kind)))]
    if nearest := _nearest(candidates, asked):
        found.insert(0, WouldGive(("keep",), nearest))
    if found or not (limits := _limits(asked)):
        return found
    free = _without(asked, *limits)
    best = choose(candidates, free) or _nearest(candidates, free)
    return [WouldGive(tuple(fault.kind for fault in faults(best, asked)), best)] if best else []


def _nearest(candidates: Iterable[Candidate], asked: Asked) -> Candidate | None:
    """The highest bound within the limits, of those that surely keep anything."""
    inside = (one for one in candidates if {fault.kind for fault in faults(one, asked)} <= {"keep"})
    some = (one for one in inside if float(floored(bound(one))) > 0)
    return min(some, key=lambda one: by_bound(one, asked.pages), default=None)


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


def front(candidates: Iterable[Candidate], pages: float) -> list[Candidate]:
    """The rows that can be advised by what is kept and by size: of each, no smaller one has as high a bound."""
    found: list[Candidate] = []
    for one in sorted((one for one in candidates if not one.barred), key=lambda one: by_cost(one, pages)):
        if not found or bound(one) > bound(found[-1]):
            found.append(one)
    return found
