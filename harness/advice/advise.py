"""Advice as a person or a program is given it: what to take, what fell and why, what it rests on and does not cover."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from harness.advice.cost import Cost, Rates, ScanRate, cost_of, with_scan_time
from harness.advice.rule import Asked, Candidate, Fault, WouldGive, by_cost, choose, faults, would_give
from harness.advice.words import in_words


@dataclass(frozen=True)
class Basis:
    """Where the rows come from."""

    source: str
    benchmark: str
    backbone: str
    kind: str
    data_sets: int
    pages: int | None
    queries: int | None
    dim: int | None
    remarks: tuple[str, ...] = ()
    """What a reader of these figures must know, such as that they are of a nano model."""


@dataclass(frozen=True)
class Option:
    """A row with what it costs, and what speaks against it: nothing if it qualifies."""

    candidate: Candidate
    cost: Cost | None
    faults: tuple[Fault, ...]


@dataclass(frozen=True)
class Advice:
    """The answer. `chosen` is None where nothing qualifies; then `would_give` says what would have to give."""

    asked: Asked
    scanned: float
    """Pages scored for a query."""
    basis: Basis
    chosen: Option | None
    others: tuple[Option, ...]
    would_give: tuple[WouldGive, ...]
    rate: ScanRate | None
    """At the width of what is advised."""

    @property
    def statuses(self) -> dict[str, int]:
        """How far the rows were checked, and how many of each."""
        rows = [option.candidate for option in (*([self.chosen] if self.chosen else []), *self.others)]
        return dict(sorted(Counter(row.status for row in rows).items()))

    @property
    def able(self) -> list[Option]:
        """Others that qualify, the cheapest first."""
        return sorted((o for o in self.others if not o.faults), key=lambda o: by_cost(o.candidate, self.asked.pages))

    @property
    def fallen(self) -> list[Option]:
        """What fell and is no larger than what is advised, the most promising first.

        Rows that may never be advised are there if they look as if they would do, or if there are no others.
        """
        most = self.chosen.cost.index_gb if self.chosen and self.chosen.cost else float("inf")
        small = [o for o in self.others if o.faults and (o.cost is None or o.cost.index_gb <= most)]
        near = [o for o in small if not o.candidate.barred or (o.candidate.retention or 0.0) >= self.asked.keep]
        return sorted(near or small, key=_promise)

    def limits(self) -> list[str]:
        """What it does not cover."""
        pages = f"the {self.basis.pages:,} pages" if self.basis.pages else "the pages"
        found = [
            f"other pages and questions than {self.basis.benchmark}'s, and other retrievers than {self.basis.backbone}",
            f"more distractors: retention was measured among {pages} there are, not among {self.asked.pages:,.0f}",
            "the choice itself: each bound holds for its own row, not for the best of many",
        ]
        if self.scanned < self.asked.pages:
            found.append("what the first stage loses that hands over the pages to be scanned")
        else:
            found.append("a first stage (ANN): every page is scanned exactly")
        found.append("what a vector database adds to the index: ids, graphs, replicas")
        if self.chosen and self.chosen.candidate.codec != "float16":
            found.append("kernels that scan codes as they are: the scan is that of decoded vectors")
        return found

    def __str__(self) -> str:
        return "\n".join(in_words(self))

    def record(self) -> dict[str, Any]:
        """For programs: everything, with every row."""
        return {
            "asked": {**asdict(self.asked), "scanned_pages": self.scanned},
            "advised": self.chosen and _record(self.chosen),
            "would_have_to_give": [{"give_up": list(one.given_up), **asdict(one.candidate)} for one in self.would_give],
            "others": [_record(option) for option in self.others],
            "rests_on": {**asdict(self.basis), "statuses": self.statuses},
            "does_not_cover": self.limits(),
            "scan_rate": self.rate and asdict(self.rate),
        }


def _promise(option: Option) -> tuple[bool, float, float, str, float]:
    row = option.candidate
    found = row.retention if row.low is None else row.low
    return bool(row.barred), -(found or 0.0), option.cost.index_gb if option.cost else 0.0, row.text, row.budget


def _record(option: Option) -> dict[str, Any]:
    return {
        **asdict(option.candidate),
        "cost": option.cost and asdict(option.cost),
        "faults": [fault._asdict() for fault in option.faults],
    }


def advise(
    candidates: Iterable[Candidate], basis: Basis, asked: Asked, rates: Rates | None, scanned: float | None = None
) -> Advice:
    """Advice from rows. `scanned`: how many pages a query is scored against, if a first stage leaves some out."""
    pages = asked.pages if scanned is None else min(scanned, asked.pages)
    rows = [with_scan_time(one, rates, pages) for one in candidates]
    best = choose(rows, asked)
    options = [Option(one, cost_of(one, asked.pages), faults(one, asked)) for one in rows]
    chosen = next((option for option in options if option.candidate is best), None)
    others = tuple(option for option in options if option is not chosen)
    width = best.width if best else basis.dim
    rate = rates(width) if rates and width else None
    return Advice(asked, pages, basis, chosen, others, () if best else tuple(would_give(rows, asked)), rate)
