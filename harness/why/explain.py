"""What changed between a method and another one, or the full model, in one run: figures, then queries to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.evaluation.methods import FULL
from harness.progress import Progress
from harness.why.differences import Bar, Group, distribution, groups, most_changed, per_query
from harness.why.hits import Hits
from harness.why.page_view import DrawnCell, DrawnQuery, PageView, cell_of
from harness.why.record import Record, gold_pages, open_record
from harness.why.survey import Survey, survey
from harness.why.tokens import Token
from harness.why.words import paragraph
from pruners.core.errors import PruneBoardError

if TYPE_CHECKING:
    from harness.runs.results import Results

MOST = 20
LONGEST = 560
"""Pixels of a page's longer side: forty pages below 6 MB."""


@dataclass(frozen=True)
class Panel:
    """A page of a case: which one it is, under which method, and how the query scores on it."""

    title: str
    view: PageView
    cell: DrawnCell
    rank: int | None
    """Under this method; None: not among the best ten."""
    hits: Hits


@dataclass(frozen=True)
class Case:
    """A query that lost or won. Without pages it has its figures only, and `query` is None."""

    anchor: str
    id: str
    data_set: str
    language: str
    method: float
    against: float
    query: DrawnQuery | None = None
    tokens: Sequence[tuple[Token, float]] = ()
    """With the similarity that each lost on the gold page."""
    panels: Sequence[Panel] = ()
    note: str = ""

    @property
    def difference(self) -> float:
        return self.method - self.against


@dataclass(frozen=True)
class Explanation:
    """Everything that the page shows."""

    run: str
    backbone: str
    benchmark: str
    method: str
    against: str
    budget: float
    words: Sequence[str]
    groups: Sequence[Group]
    bars: Sequence[Bar]
    counts: tuple[int, int, int]
    """Queries that lost, won and stayed."""
    cases: Sequence[Case]
    missing: Sequence[str]
    survey: Survey | None


def _require_float16(results: Results, method: str) -> None:
    """Hits are of the vectors that a method keeps, before a codec stores them."""
    if codec := results._run.methods.get(method, {}).get("codec"):
        raise PruneBoardError(
            f"{method} is stored as {codec['text']}, and pictures are of vectors that are not stored yet: explain the "
            "method without its codec, or ask for figures only"
        )


def explain_run(
    results: Results,
    stores: Path,
    progress: Progress,
    *,
    method: str | None = None,
    against: str = FULL,
    budget: float | None = None,
    most: int = MOST,
    figures_only: bool = False,
) -> Explanation:
    """Explain a method of a run. None: the run's first method, and a budget of 0.1 (or the run's smallest)."""
    method, budget = _chosen(results, method, against, budget)
    if most < 1:
        raise PruneBoardError(f"at least one query is shown, not {most}")
    if not figures_only:
        for name in {method, against} - {FULL}:
            _require_float16(results, name)
    record = open_record(results, stores, figures_only)
    frame = per_query(record, method, against, budget)
    if frame.empty:
        reasons = [f"{name} failed: {results.failures[name]}" for name in (method, against) if name in results.failures]
        both = f"no data set of {results.folder} has results of both {method} and {against}"
        raise PruneBoardError(reasons[0] if reasons else both)
    rows = most_changed(frame, most)
    missing = list(record.missing)
    cases = []
    with progress("draw and compare with the run", total=len(rows), done=0) as advance:
        for number, row in enumerate(rows, 1):
            cases.append(_case(record, method, against, budget, row, number, missing))
            advance(1)
    found = survey(record, method, budget, results.config.seed, progress) if record.pages else None
    parts = groups(frame)
    gaps = frame["difference"]
    counts = int((gaps < 0).sum()), int((gaps > 0).sum()), int((gaps == 0).sum())
    return Explanation(
        run=str(results.folder),
        backbone=str(record.run.card["name"]),
        benchmark=str(record.run.card["benchmark"]),
        method=method,
        against=against,
        budget=budget,
        words=paragraph(results, method, against, budget, parts, counts, found, cases),
        groups=parts,
        bars=distribution(frame["difference"].tolist()),
        counts=counts,
        cases=cases,
        missing=list(dict.fromkeys(missing)),
        survey=found,
    )


def _chosen(results: Results, method: str | None, against: str, budget: float | None) -> tuple[str, float]:
    """The method and the budget that are explained, or an error that says what there is."""
    budgets = results.config.budgets
    chosen = budget if budget is not None else (0.1 if 0.1 in budgets else budgets[0])
    if chosen not in budgets:
        raise PruneBoardError(
            f"{results.folder} was not measured at a budget of {chosen:g}; its budgets are "
            + ", ".join(f"{b:g}" for b in budgets)
        )
    able = [m for m in results._measured if not (m.own_threshold or m.partner_of)]
    if method is None:
        ranked = [m for m in able if not m.diagnostic]
        if not ranked:
            raise PruneBoardError(
                f"{results.folder} has no method to explain: {results.failures or 'none was measured'}"
            )
        method = ranked[0].text
    for name in (method, *([] if against == FULL else [against])):
        found = results._find(name)
        if found.own_threshold or found.partner_of:
            raise PruneBoardError(f"{name} has a budget of its own, not {chosen:g}; name a method at the run's budgets")
    if method == against:
        raise PruneBoardError(f"{method} against itself: name another method with --against, or full")
    return method, chosen


def _case(
    record: Record, method: str, against: str, budget: float, row: dict[str, Any], number: int, missing: list[str]
) -> Case:
    bare: dict[str, Any] = {
        "anchor": f"q{number}",
        "id": str(row["query"]),
        "data_set": str(row["data_set"]),
        "language": str(row["language"] or ""),
        "method": float(row["method"]),
        "against": float(row["against"]),
    }
    data_set = bare["data_set"]
    if data_set not in record.pages:
        return Case(**bare)
    pages = record.pages[data_set]
    query = pages.query(bare["id"])
    if pages.no_backbone is not None:
        missing.append(f"the words of query tokens, which are numbered instead: {pages.no_backbone}")
    gold = gold_pages(pages.data_set, query.id)
    for name in (method, against):
        record.check_query(data_set, name, budget, query, gold)
    at = {page: record.score(data_set, against, pages.index(page), budget, query) for page in gold}
    best = max(gold, key=lambda page: at[page])
    hits = {name: _hits(record, data_set, name, budget, best, query) for name in (method, against)}
    lost = hits[against].similarity_after - hits[method].similarity_after
    tokens = [(token, float(value)) for token, value in zip(query.tokens, lost, strict=True)]
    try:
        panels = _panels(record, method, against, budget, data_set, query, best, gold, bare["method"] < bare["against"])
    except PruneBoardError as error:
        missing.append(f"pictures of {data_set}: {error}")
        return Case(**bare, query=query, tokens=tokens)
    return Case(**bare, query=query, tokens=tokens, panels=panels)


def _panels(
    record: Record,
    method: str,
    against: str,
    budget: float,
    data_set: str,
    query: DrawnQuery,
    best: str,
    gold: Sequence[str],
    lost: bool,
) -> list[Panel]:
    """The gold page under both, and the page that stands above it where the query does worse."""
    worse = method if lost else against
    shown = [("relevant page", best, method)]
    if against != FULL:
        shown.append(("relevant page", best, against))
    ranking = record.ranked(data_set, worse, budget, query.id)
    above = ranking[: ranking.index(best)] if best in ranking else ranking
    if others := [page for page in above if page not in gold]:
        shown.append(("page that won instead" if lost else "page that won before", others[0], worse))
    return [_panel(record, title, data_set, page, name, budget, query) for title, page, name in shown]


def _panel(
    record: Record, title: str, data_set: str, page_id: str, method: str, budget: float, query: DrawnQuery
) -> Panel:
    pages = record.pages[data_set]
    index = pages.index(page_id)
    page = pages.page(index)
    kept = record.kept(data_set, method, index, budget)
    cell = cell_of(method, budget if method != FULL else 1.0, kept, page.vectors, query, pages.prompt(index))
    assert cell.hits is not None
    ranking = record.ranked(data_set, method, budget, query.id)
    rank = ranking.index(page_id) + 1 if page_id in ranking else None
    view = PageView(page_id, data_set, pages.canvas(index, page, LONGEST), [[cell]], query)
    return Panel(title, view, cell, rank, cell.hits)


def _hits(record: Record, data_set: str, method: str, budget: float, page_id: str, query: DrawnQuery) -> Hits:
    from harness.why.hits import hits_of

    pages = record.pages[data_set]
    index = pages.index(page_id)
    kept = record.kept(data_set, method, index, budget)
    return hits_of(query.vectors, pages.page(index).vectors, kept, pages.prompt(index))
