"""What an explanation says in plain words: every figure in it stands in the run, or in the survey of its pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.evaluation.methods import FULL
from harness.why.differences import Group
from harness.why.shapes import signed
from harness.why.survey import Survey

if TYPE_CHECKING:
    from harness.runs.results import Results

NOTABLE = 0.01
"""Points of NDCG@5 below which two groups are not told apart in words."""


def paragraph(
    results: Results,
    method: str,
    against: str,
    budget: float,
    groups: Sequence[Group],
    counts: tuple[int, int, int],
    survey: Survey | None,
    cases: Sequence[Any],
) -> list[str]:
    """What changed, and why, in a few sentences each."""
    said = [*_overall(results, method, against, budget), _counted(method, against, counts)]
    for kind in dict.fromkeys(group.kind for group in groups):
        if sentence := _extremes(kind, [group for group in groups if group.kind == kind]):
            said.append(sentence)
    why = [*_why(method, survey), *_instead(cases)]
    return [" ".join(part) for part in (said, why) if part]


def _overall(results: Results, method: str, against: str, budget: float) -> list[str]:
    rows = {(row["method"], row["budget"]): row for row in results.rows[1:] if "own_threshold" not in row}
    share = f"{100 * budget:.3g} %"
    row = rows.get((method, budget))
    if row is None:
        return [f"{method} has no results on some data sets; these are the others."]
    low, high = row["retention_interval"]
    said = [
        f"At {share} of the vectors, {method} keeps {row['retention']:.1f} % of the full model's NDCG@5 "
        f"(95 % interval {low:.1f} to {high:.1f})."
    ]
    if against != FULL and (against, budget) in rows:
        gap = results.compare(method, against).set_index("budget").loc[budget]
        told = "" if gap["low"] > 0 or gap["high"] < 0 else "; they cannot be told apart"
        said.append(
            f"{against} keeps {rows[against, budget]['retention']:.1f} %: a difference of "
            f"{signed(gap['difference'], 1)} points ({signed(gap['low'], 1)} to {signed(gap['high'], 1)}){told}."
        )
    return said


def _counted(method: str, against: str, counts: tuple[int, int, int]) -> str:
    lost, won, stayed = counts
    than = "the full model" if against == FULL else against
    return f"Of {sum(counts)} queries, {lost} do worse than with {than}, {won} better, and {stayed} the same."


def _extremes(kind: str, groups: Sequence[Group]) -> str | None:
    ordered = sorted(groups, key=lambda group: group.difference)
    if len(groups) < 2 or ordered[-1].difference - ordered[0].difference < NOTABLE:
        return None
    worst, best = ordered[0], ordered[-1]
    return (
        f"By {kind}, the difference in NDCG@5 goes from {signed(worst.difference)} ({worst.name}) "
        f"to {signed(best.difference)} ({best.name})."
    )


def _why(method: str, survey: Survey | None) -> list[str]:
    if survey is None:
        return []
    said = [
        f"On relevant pages, a query's token loses {survey.lost:.2f} of similarity on average "
        f"({survey.pairs} pairs of a query and its page)."
    ]
    if survey.hits_kept is not None:
        said.append(
            f"Of the vectors that queries match on the whole page, {method} keeps {100 * survey.hits_kept:.0f} %."
        )
    if survey.blank_kept is not None and survey.blank_hit is not None and survey.blank_page is not None:
        said.append(
            f"Blank patches are {100 * survey.blank_page:.0f} % of these pages, {100 * survey.blank_kept:.0f} % of "
            f"what {method} keeps, and {100 * survey.blank_hit:.0f} % of what queries match."
        )
    return said


def _instead(cases: Sequence[Any]) -> list[str]:
    """Whether the page that won lost less than the relevant one."""
    pairs = [
        (case.panels[0].hits, case.panels[-1].hits)
        for case in cases
        if case.difference < 0 and case.panels and case.panels[-1].title == "page that won instead"
    ]
    if not pairs:
        return []
    fewer = sum(other.score_before - other.score_after < gold.score_before - gold.score_after for gold, other in pairs)
    return [
        f"In {fewer} of the {len(pairs)} lost queries below, the page that won instead lost less than the relevant one."
    ]
