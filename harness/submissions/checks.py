"""What must be true of one submission, beside its form: its place, id, cells, benchmark, and full model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path

from harness.metrics.results_table import benchmark_mean, data_set_mean
from harness.submissions.benchmark import BenchmarkRecord, coverage, missing
from harness.submissions.folder import submission_path
from harness.submissions.mteb_figures import MODELS, mteb_table
from harness.submissions.problems import Notes, printable
from harness.submissions.schema import Cell, Submission, Track, content_id
from harness.submissions.tables import kept_path, per_query_path
from pruners.core.catalog import DECORATORS, catalogue, kind
from pruners.core.errors import PruneBoardError
from pruners.core.plugins import scan_text

MEAN_TOLERANCE = 1.0
MANY_QUERIES, TOLERANCE_MANY, TOLERANCE_FEW = 280, 2.0, 5.0  # points of NDCG@5, in %


CONTENT = ("revision", "pages", "queries", "languages", "corpus", "page_texts", "query_texts", "qrels")
PRINTED = 0.005, 0.05
"""What rounding may change in a printed NDCG, and in a printed percentage."""
MOST_PRINTED = 120.0
"""Retention, in %, that a paper may print; the highest on the board is 100.9."""
EARLIEST = date(2024, 6, 27)
"""ColPali's paper: before it there was nothing to submit."""
TRACKS = {"subset": Track.subset, "merged": Track.merging, "quantised": Track.quantised}
_NAMES = re.compile(r"[A-Za-z_]\w*(?![\w=])")
TOLERANCE = 1e-5
AGAIN = "submit the run again with `harness submit`"


def where(i: int, cell: Cell) -> str:
    """A cell as a person finds it: its number, and what it is."""
    language = f" in {printable(cell.language)}" if cell.language else ""
    return f"cells[{i}] ({printable(cell.data_set)}{language} at {cell.budget:g})"


def check_place(submission: Submission, inside: Path, notes: Notes) -> None:
    """`inside`: where the file is, below the folder of submissions."""
    if inside != submission_path(submission):
        notes.error("path", f"the content belongs to {submission_path(submission)}", "move the file, or mend its names")
    if (expected := content_id(submission)) != submission.id:
        notes.error(
            "id",
            f"is {printable(submission.id)}, but this content has {expected}: figures were changed",
            "a changed score is a new submission: `harness submit` writes it; list the old id in removed.json",
        )


def check_claim(submission: Submission, path: Path, notes: Notes) -> None:
    """Who measured must show the rankings; who reports has none."""
    tables = {"per_query": per_query_path(path), "kept": kept_path(path)}
    if submission.origin.submitted > datetime.now(UTC).date() + timedelta(1):
        notes.error("origin.submitted", f"{submission.origin.submitted} is in the future", "say when it was submitted")
    if submission.origin.submitted < EARLIEST:
        notes.error("origin.submitted", f"{submission.origin.submitted} is before {EARLIEST}", "say when it was")
    if submission.claim == "reported":
        check_printed(submission, notes)
        for name, table in tables.items():
            if getattr(submission, name) is not None or table.exists():
                notes.error(name, "figures of a paper have no tables", "claim self-reported if you measured them")
        return
    for name, table in tables.items():
        if getattr(submission, name) is None:
            notes.error(name, "is missing: measured figures come with their tables", "write it with `harness submit`")
        elif not table.is_file():
            notes.error(name, f"{table.name} is not there", "add the file that `harness submit` wrote beside this one")
    for i, cell in enumerate(submission.cells):
        if cell.retention is not None:
            notes.error(f"{where(i, cell)}.retention", "only a paper's retention is typed in", "leave it out")
    if len({cell.trials for cell in submission.cells if cell.budget < 1}) > 1:
        notes.error("cells.trials", "differ between budgets or data sets: which were chosen, and why?", AGAIN)
    if submission.environment is None:
        notes.error("environment", "is missing", "say what it was measured with")
    unread = {"languages"} if submission.backbone.kind == "text tokens" else {"languages", "page_texts"}
    for data_set in submission.benchmark.data_sets:
        lacking = [what for what in CONTENT[1:] if what not in unread and getattr(data_set, what) is None]
        if lacking:
            field = f"benchmark.data_sets ({printable(data_set.name)})"
            notes.error(field, f"{', '.join(lacking)} missing: what was read?", "submit from a run folder")
    if (submission.claim == "reproduced") != (submission.reproduces is not None):
        notes.error(
            "reproduces", "goes with the claim `reproduced`, and only with it", "name the id, or claim otherwise"
        )


def check_printed(submission: Submission, notes: Notes) -> None:
    """Who reports names a source, and prints figures that agree with each other as far as rounding lets them."""
    origin = submission.origin
    if not (origin.paper or origin.code):
        notes.error("origin", "names no source", "say with a link (paper or code) where the figures are printed")
    full = {(c.data_set, c.language): c.ndcg.get("5", 0.0) for c in submission.cells if c.budget == 1.0}
    rounding, percent = PRINTED
    for i, cell in enumerate(submission.cells):
        of, ndcg = full.get((cell.data_set, cell.language)), cell.ndcg.get("5")
        if cell.retention is not None and cell.retention > MOST_PRINTED:
            what = f"is {cell.retention:g}: nothing that is pruned finds so much more than the full model"
            notes.error(f"{where(i, cell)}.retention", what, "it is in % of the full model's NDCG@5")
        if cell.retention is not None and of and ndcg is not None:
            got, slack = 100 * ndcg / of, 100 * rounding * (of + ndcg) / of**2 + percent
            if abs(cell.retention - got) > slack:
                what = f"is {cell.retention:g}, the NDCG@5 printed beside it gives {got:.1f}"
                notes.error(f"{where(i, cell)}.retention", what, "copy the table again")


@cache
def _built_in() -> dict[str, str]:
    """Built-in methods -> what they leave and how their budget behaves; empty for names that stand for others."""
    found = {name: entry for name, entry in catalogue().items() if entry.source == "built-in"}
    return {name: "" if entry.decorator == "preset" else kind(entry) for name, entry in found.items()}


def check_method(submission: Submission, notes: Notes) -> None:
    """A built-in method is of the track and the kind of budget that it is of."""
    method, known = submission.method, _built_in()
    names = _NAMES.findall(f"{method.composition or ''} {method.expression}")
    if (own := _own_diagnostic(submission, names, notes)) and method.track is not Track.diagnostic:
        notes.error("method.track", f"{own} is a diagnostic by its source: it has seen the queries", "call it so")
    if method.file_hash is None and (seen := next((n for n in names if "diagnostic" in known.get(n, "")), None)):
        if method.track is not Track.diagnostic:
            notes.error("method.track", f"{seen} is a diagnostic: it has seen the queries", "call it so")
        return
    outer = re.split(r"[(| ]", method.composition or method.expression)[0]
    if method.file_hash or submission.claim == "reported" or not known.get(outer):
        return  # a user's own, a paper's, or a name that stands for others
    track = Track.quantised if submission.codec else TRACKS[known[outer].partition(",")[0]]
    if not track.may_be_called(method.track):
        stored = " stored by a codec" if submission.codec else ""
        notes.error("method.track", f"{outer}{stored} is of the track {track.value}", "call it so")
    for claimed, what in ((method.adaptive, "adaptive"), (method.snapped, "snapped")):
        if claimed and all(known.get(name, what).find(what) < 0 for name in names if known.get(name) != ""):
            notes.error(f"method.{what}", f"{outer} is not: every page keeps its budget", AGAIN)


def _own_diagnostic(submission: Submission, names: Sequence[str], notes: Notes) -> str | None:
    """The first diagnostic among the methods that a carried source declares; it is read, and not run."""
    for path, code in submission.method.source.items():
        try:
            declared = scan_text(code.encode(), Path(path), DECORATORS)
        except PruneBoardError as error:
            notes.error("method.source", printable(error), "carry the file that was measured")
            continue
        if seen := next((e.name for e in declared if e.decorator == "diagnostic" and e.name in names), None):
            return seen
    return None


def check_code(submission: Submission, notes: Notes) -> None:
    """The code that a method names must be the one that measured every cell, and the version the one that ran."""
    method, environment = submission.method, submission.environment
    others = [i for i, cell in enumerate(submission.cells) if cell.budget < 1 and cell.code != method.code]
    if others:
        field = f"{where(others[0], submission.cells[others[0]])}.code"
        what = f"{len(others)} cells were measured by other code than method.code names"
        notes.error(field, what, "evaluate again: it measures what changed; then `harness submit`")
    measured = environment.libraries.get("pruneboard") if environment else None
    built_in = method.version is not None and " " not in method.version  # a package's version follows its name
    if method.code and built_in and measured is not None and method.version != measured:
        what = f"is {printable(str(method.version))}, but {printable(measured)} measured it"
        notes.error("method.version", what, AGAIN)


def check_cells(submission: Submission, record: BenchmarkRecord, notes: Notes) -> None:
    reported = submission.claim == "reported"
    listed = {data_set.name for data_set in submission.benchmark.data_sets}
    keys = Counter((cell.data_set, cell.language, cell.budget) for cell in submission.cells)
    for (data_set, language, budget), times in keys.items():
        if times > 1:
            field = f"cells ({printable(data_set)} {printable(language)} at {budget:g})"
            notes.error(field, f"occurs {times} times", "keep one")
    for name in dict.fromkeys(cell.data_set for cell in submission.cells):
        cells = [cell for cell in submission.cells if cell.data_set == name]
        field = f"cells ({printable(name)})"
        if name not in listed:
            notes.error(field, "benchmark.data_sets does not list it", "list it, or mend the name")
        if name not in record.data_sets:
            say = notes.warn if reported else notes.error
            say(field, f"is no data set of {record.facts.name}: it counts for nothing", "see benchmark.json")
        else:
            strange = {cell.language for cell in cells} - {*record.data_sets[name].languages, ""}
            if strange:
                notes.error(field, f"the benchmark has no queries in {printable(min(strange))}", "mend the language")
        full = {cell.language for cell in cells if cell.budget == 1.0}
        lacking = {cell.language for cell in cells} - full
        if lacking and not (reported and all(cell.retention is not None for cell in cells)):
            what = (
                f"has no cell of the full model (budget 1.0){f' in {printable(min(lacking))}' if min(lacking) else ''}"
            )
            notes.error(field, what, "every figure is relative to the full model of the same run: add its cells")
    _warn_of_gaps(submission, record, notes)


def _warn_of_gaps(submission: Submission, record: BenchmarkRecord, notes: Notes) -> None:
    """One line for all budgets that lack the same."""
    gaps: dict[tuple[str, ...], list[float]] = {}
    found = coverage(submission, record)
    for budget, (done, wanted) in found.items():
        if done < wanted:
            gaps.setdefault(tuple(missing(submission, record, budget)), []).append(budget)
    for lacking, budgets in gaps.items():
        done, wanted = found[budgets[0]]
        some = ", ".join(map(printable, lacking[:3])) + (" …" if len(lacking) > 3 else "")
        at = ", ".join(f"{budget:.4g}" for budget in budgets)
        notes.warn("cells", f"{done}/{wanted} at budget {at}, so unranked: no {some}", "measure the rest")


def check_content(submission: Submission, record: BenchmarkRecord, notes: Notes) -> None:
    """What was read must be what is pinned: counts, revisions and hashes."""
    for data_set in submission.benchmark.data_sets:
        known = record.data_sets.get(data_set.name)
        if known is None:
            continue  # said with its cells
        for what in CONTENT:
            mine, theirs = getattr(data_set, what), getattr(known, what)
            if mine not in (None, ()) and theirs not in (None, ()) and mine != theirs:
                field = f"benchmark.data_sets ({printable(data_set.name)}).{what}"
                notes.error(
                    field, f"{printable(mine)} was read, {printable(theirs)} is pinned", "measure on the pinned data"
                )


def check_official(submission: Submission, record: BenchmarkRecord, notes: Notes) -> None:
    complete = coverage(submission, record).get(1.0, (0, 1))
    for check in compare_with_mteb(submission, complete[0] == complete[1]):
        if not check.passed:
            what = f"{printable(check.data_set)}" if check.data_set else "mean of the benchmark"
            notes.warn(
                f"full model ({what})",
                f"NDCG@5 {check.ours:.1f}, MTEB has {check.official:.1f}: more than {check.tolerance:g} apart",
                "look at query template, revision and dtype before believing what is relative to it",
            )


@dataclass(frozen=True)
class MtebCheck:
    """NDCG@5 in %, ours and MTEB's, of a data set or (`data_set` empty) of the mean over all."""

    data_set: str
    ours: float
    official: float
    tolerance: float

    @property
    def passed(self) -> bool:
        return abs(self.ours - self.official) <= self.tolerance


def compare_with_mteb(submission: Submission, complete: bool = True) -> list[MtebCheck]:
    """Every data set that MTEB has figures for, and, of a complete benchmark, the mean; empty if it has none."""
    models, table = MODELS.get(submission.backbone.name, ()), mteb_table()
    checks = []
    for name in dict.fromkeys(cell.data_set for cell in submission.cells):
        cells = [c for c in submission.cells if c.data_set == name and c.budget == 1.0 and "5" in c.ndcg]
        known = next((table[model, name] for model in models if (model, name) in table), None)
        if known and cells:
            ours, official = _pair(cells, known)
            many = sum(queries for _, queries in known.values()) >= MANY_QUERIES
            checks.append(MtebCheck(name, ours, official, TOLERANCE_MANY if many else TOLERANCE_FEW))
    if complete and len(checks) > 1:
        ours, official = (float(benchmark_mean([getattr(c, what) for c in checks])) for what in ("ours", "official"))
        checks.append(MtebCheck("", ours, official, MEAN_TOLERANCE))
    return checks


def _pair(cells: Sequence[Cell], known: dict[str, tuple[float, int]]) -> tuple[float, float]:
    """Means over the languages that both have; a cell without a language stands for all of them."""
    shared = [cell for cell in cells if (cell.language or "default") in known]
    if not shared:
        return 100 * float(data_set_mean([c.ndcg["5"] for c in cells])), _mean([v for v, _ in known.values()])
    return (
        100 * float(data_set_mean([c.ndcg["5"] for c in shared])),
        _mean([known[c.language or "default"][0] for c in shared]),
    )


def _mean(values: Sequence[float]) -> float:
    return 100 * float(data_set_mean(values))
