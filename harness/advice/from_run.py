"""The rows of a finished run, as advice takes them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from harness.advice.advise import Basis
from harness.advice.rule import Candidate, why_barred
from harness.advice.width import scanned_width
from harness.benchmarks.embedded import NANO_NOTE
from harness.evaluation.index_size import own_bytes
from harness.evaluation.methods import FULL
from harness.runs.results import Results
from harness.runs.table import stored_as
from harness.submissions.run_facts import FinishedRun

STATUS = "own run"
"""Of what nobody else has checked."""


def run_candidates(results: Results) -> Iterator[Candidate]:
    """One for each row of the table; the unpruned index keeps 100 by definition."""
    run = FinishedRun(results.folder)
    pages, dim = [facts["pages"] for facts in run.stores.values()], run.card["dim"]
    for row in results.rows:
        facts = run.methods.get(row["method"], {})
        whole = row["method"] == FULL and "retention_interval" not in row
        low, high = (100.0, 100.0) if whole else map(_known, row["retention_interval"])
        shared, stored = facts.get("shared_bytes", 0), stored_as(row)
        barred = why_barred(STATUS, "diagnostic" if facts.get("diagnostic") else "", None, low is not None, True)
        if facts.get("partner_of"):
            barred = f"it is the partner of {facts['partner_of']}, at that one's ratio on each data set"
        yield Candidate(
            text=row["method"],
            budget=row["budget"],
            own_bytes=own_bytes(row["bytes_per_page"], shared, pages),
            shared_bytes=shared,
            retention=row["retention"],
            low=low,
            high=high,
            status=STATUS,
            codec=stored,
            vectors_per_page=row["vectors_per_page"],
            width=scanned_width(stored, dim),
            prune_ms=row.get("prune_ms_per_page"),
            needs=tuple(facts.get("needs", ())),
            barred=barred,
        )


def _known(value: float) -> float | None:
    """None where the full model finds nothing, so that there is no interval."""
    return None if math.isnan(value) else value


def run_basis(results: Results) -> Basis:
    run = FinishedRun(results.folder)
    counts = [(facts["pages"], facts["queries"]) for facts in run.stores.values()]
    return Basis(
        source=str(results.folder),
        benchmark=run.card["benchmark"],
        backbone=run.card["name"],
        kind=run.card.get("kind", "visual"),
        data_sets=len(run.stores),
        pages=sum(pages for pages, _ in counts),
        queries=sum(queries for _, queries in counts),
        dim=run.card["dim"],
        remarks=(NANO_NOTE,) if run.card["name"] == "nano" else (),
    )
