"""Submissions checked as the leaderboard checks them: all problems at once, and nothing that was submitted is run."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.files import file_checksum
from harness.metrics.results_table import ResultsTable
from harness.parquet import TableError
from harness.submissions.benchmark import BenchmarkRecord, checked_benchmark, coverage
from harness.submissions.checks import (
    AGAIN,
    check_cells,
    check_claim,
    check_code,
    check_content,
    check_method,
    check_official,
    check_place,
)
from harness.submissions.comparisons import Peer, check_against_full_and_random, check_copies, reproductions
from harness.submissions.folder import (
    BENCHMARK,
    ENDINGS,
    FULL,
    MEASURED_AGAIN,
    PINS,
    VERIFIED,
    ChangeBy,
    check_history,
    check_tree,
    find_root,
    find_submissions,
    read_submission,
    unsafe,
)
from harness.submissions.measured_again import Verification, read_measured_again, still_holds
from harness.submissions.pins import (
    BenchmarkPin,
    PinnedFullModel,
    check_full_model,
    check_pinned_files,
    read_full_model,
    read_pins,
    with_full_model,
)
from harness.submissions.problems import Notes, Problem, SubmissionError, crash, printable
from harness.submissions.schema import BenchmarkFacts, Submission
from harness.submissions.size_checks import check_size
from harness.submissions.table_checks import Recomputed, check_kept, check_per_query
from harness.submissions.tables import kept_path, per_query_path, read_kept, read_per_query
from harness.submissions.verified import read_verified
from harness.workers import spread
from pruners.core.errors import PruneBoardError

NOBODY = ChangeBy()


@dataclass(frozen=True)
class CheckedSubmission:
    """A submission as found on disk. `status` is the rung of the ladder that it has really reached.

    Where NDCG was computed again, `submission` and `scores` have the values that came out.
    """

    path: Path
    submission: Submission
    scores: ResultsTable | None
    """Of each query; None where figures are reported."""
    status: str
    """reported, unpinned, recomputed, reproduced or verified; a preview of a run of one's own is self-reported."""
    warnings: tuple[str, ...] = ()
    coverage: Mapping[float, tuple[int, int]] = field(default_factory=dict)
    """Budget -> complete data sets (every language there), and data sets of the benchmark: 13 of 14."""
    reproduced_by: tuple[str, ...] = ()
    """Ids of submissions by others that measured the same and agree."""

    rankings: Mapping[tuple[str, float], str] = field(default_factory=dict)
    """(data set, budget) -> digest of the rankings, by which copies are found."""
    content: str = ""
    """Digest of all rows that were measured; empty where there are none."""

    @property
    def ranked(self) -> bool:
        """Measured, on data and against a full model that a maintainer has pinned."""
        return self.status not in ("reported", "unpinned")

    def is_complete(self, budget: float) -> bool:
        """Only complete rows are averaged and ranked."""
        done, all_of_them = self.coverage.get(budget, (0, 1))
        return done == all_of_them


@dataclass(frozen=True)
class ValidationReport:
    """Submissions without an error, and every problem of all that was looked at."""

    entries: tuple[CheckedSubmission, ...]
    problems: tuple[Problem, ...]
    files: int
    benchmarks: Mapping[str, BenchmarkFacts] = field(default_factory=dict)
    """Those that can be used."""
    root: Path = Path()
    """The folder of submissions."""

    @property
    def passed(self) -> bool:
        return not any(problem.level == "error" for problem in self.problems)


@dataclass
class _Checking:
    """The state of one validation."""

    root: Path
    known: frozenset[str] = frozenset()
    """Ids that were there before."""
    pins: dict[str, BenchmarkPin] = field(default_factory=dict)
    measured_again: dict[str, Verification] = field(default_factory=dict)
    records: dict[str, BenchmarkRecord | None] = field(default_factory=dict)
    full_models: dict[tuple[str, str], PinnedFullModel | None] = field(default_factory=dict)
    notes: list[Notes] = field(default_factory=list)
    entries: list[CheckedSubmission] = field(default_factory=list)

    def about(self, path: Path) -> Notes:
        self.notes.append(Notes(path, []))
        return self.notes[-1]


@dataclass(frozen=True)
class _Read:
    """A submission, its benchmark if that can be used, and where to say what is found."""

    path: Path
    inside: Path
    """Below the folder of submissions."""
    submission: Submission
    record: BenchmarkRecord | None
    full: PinnedFullModel | None
    """Of its backbone, if one is pinned."""
    notes: Notes


def validate(
    root: Path, files: Sequence[Path] | None = None, base: Path | None = None, by: ChangeBy = NOBODY
) -> ValidationReport:
    """Check `files`, or everything below the folder of submissions `root`.

    `base` is the state that it grew from, `by` who changed it.
    """
    if base is not None and not base.is_dir():
        raise PruneBoardError(f"--against is the folder of submissions before the change; {base} is no folder")
    known = frozenset(path.stem for path in find_submissions(base)) if base is not None else frozenset()
    checking = _Checking(root, known)
    checking.pins = read_pins(root, checking.about(root / PINS))
    read_verified(root, checking.about(root / VERIFIED))
    checking.measured_again = read_measured_again(root, checking.about(root / MEASURED_AGAIN))
    wanted = find_submissions(root) if files is None else list(files)
    looked_at = wanted if files is None else dict.fromkeys([*_context(files), *files])
    _check_each(checking, list(looked_at))
    _check_together(checking)
    if files is None:
        check_tree(root, checking.about)
        if base is not None:
            check_history(root, base, by, checking.about)
    shown = {path.resolve() for path in wanted} | {(root / name).resolve() for name in checking.records}
    problems = [
        problem
        for notes in checking.notes
        for problem in notes.found
        if files is None or problem.file.resolve() in shown or problem.file.parent.resolve() in shown
    ]
    entries = [entry for entry in checking.entries if files is None or entry.path.resolve() in shown]
    usable = {name: record.facts for name, record in checking.records.items() if record is not None}
    return ValidationReport(tuple(_with_warnings(entries, checking.notes)), tuple(problems), len(wanted), usable, root)


def validate_below(target: Path, base: Path | None, change: ChangeBy) -> ValidationReport:
    """Check a submission, or those in a folder that is a folder of submissions or lies in one."""
    if not target.exists():
        raise PruneBoardError(f"there is no {target}; name a submission or a folder of submissions")
    root, files = find_root(target), None
    if target.resolve() != root:
        inside = [path for path in find_submissions(root) if path.resolve().is_relative_to(target.resolve())]
        files = [target] if target.is_file() else inside
        if not files:
            raise PruneBoardError(f"{target} has no submissions in it")
    if base is not None and files is not None:
        raise PruneBoardError("--against compares whole folders of submissions: name the folder, not a part of it")
    return validate(root, files, base, change)


def _context(files: Sequence[Path]) -> list[Path]:
    """Submissions of the same backbones and benchmarks: random's row, and what is reproduced, are among them."""
    homes = {path.parent.parent for path in files if (path.parent.parent.parent / BENCHMARK).is_file()}
    return [path for home in sorted(homes) for path in sorted(home.glob("*/*.json"))]


def _check_each(checking: _Checking, paths: Sequence[Path]) -> None:
    """Every submission by itself, spread over the cores; their order stays. One that waits takes no memory."""
    _read_shared(checking, paths)
    notes_of = {path: checking.about(path) for path in paths}
    known: dict[Hashable, Any] = {}
    with spread(lambda path: _check_alone(checking, path), paths, os.cpu_count() or 1) as results:
        for path, (problems, entry) in zip(paths, results, strict=True):
            notes_of[path].found[:] = problems  # a worker has notes of its own
            if entry is not None:
                checking.entries.append(_sharing(entry, known))


def _read_shared(checking: _Checking, paths: Sequence[Path]) -> None:
    """Benchmarks and full models, read before the work is spread: each worker would read them again."""
    root = checking.root.resolve()
    homes = {path.parents[1] for path in paths if unsafe(path, checking.root) is None}
    for home in sorted(home for home in homes if home.parents[1].resolve() == root):
        if (record := _record(checking, home.parent.name)) is not None:
            _full_model(checking, record, home.parent.name, home.name)


def _sharing(entry: CheckedSubmission, known: dict[Hashable, Any]) -> CheckedSubmission:
    """What many submissions have in common held once, not by every one that another process checked: the names of a
    benchmark's queries, and what is said of it.
    """
    facts = entry.submission.benchmark
    same = known.setdefault(("benchmark", facts.model_dump_json()), facts)
    entry = replace(entry, submission=entry.submission.model_copy(update={"benchmark": same}))
    if entry.scores is None:
        return entry
    queries = {cell: known.setdefault(names, names) for cell, names in entry.scores.queries.items()}
    return replace(entry, scores=ResultsTable(queries, entry.scores.measures))


def _check_alone(checking: _Checking, path: Path) -> tuple[list[Problem], CheckedSubmission | None]:
    notes = Notes(path, [])
    try:
        one = _read(checking, path, notes)
        return (notes.found, None) if one is None else _check_one(one)
    except Exception as error:  # whatever it is, it is this submission's, and the others are checked
        return [*notes.found, crash(path, error)], None


def _read(checking: _Checking, path: Path, notes: Notes) -> _Read | None:
    """A submission and its benchmark; None if it is no submission."""
    if (reason := unsafe(path, checking.root)) is not None:
        notes.error("path", reason, "put the file itself there")
        return None
    try:
        submission = read_submission(path)
    except SubmissionError as error:
        for where, what in error.problems:
            notes.error(where, what, "docs/submissions.md describes every field")
        return None
    inside = path.resolve().relative_to(checking.root.resolve())
    benchmark, backbone = submission.benchmark.name, submission.backbone.name
    record, full = _record(checking, benchmark), None
    if submission.claim != "reported" and record is not None:
        full = _full_model(checking, record, benchmark, backbone)
    return _Read(path, inside, submission, record, full, notes)


def _check_one(one: _Read) -> tuple[list[Problem], CheckedSubmission | None]:
    """All that is said of a submission, and, if no error is among it, its entry."""
    path, submission, record, notes = one.path, one.submission, one.record, one.notes
    check_place(submission, one.inside, notes)
    check_claim(submission, path, notes)
    if record is None:
        what = f"{submission.benchmark.name}/benchmark.json cannot be used"
        notes.error("benchmark.name", what, "`harness submit` writes it from a run")
        return notes.found, None
    check_cells(submission, record, notes)
    check_content(submission, record, notes)
    check_size(submission, notes)
    check_code(submission, notes)
    check_method(submission, notes)
    check_official(submission, record, notes)
    entry = CheckedSubmission(path, submission, None, submission.claim, coverage=coverage(submission, record))
    if submission.claim != "reported":
        entry = replace(entry, status="unpinned")
        found = _recompute(path, submission, record, notes) if notes.clean else None
        if found is not None and notes.clean:
            again, vectors = found
            entry = replace(entry, submission=again.submission, scores=again.scores, rankings=again.rankings)
            entry = replace(entry, content=again.content)
            if one.full is None:
                what = "nobody has pinned this benchmark's data, or this backbone's full model on it: unranked"
                notes.warn("status", what, "a maintainer compares it with its source, then `harness pin`")
            elif reason := check_full_model(again.submission, again.scores, vectors, one.full):
                field, _, what = reason.partition(": ")
                notes.error(field, what, "measure with the pinned backbone, or name yours otherwise")
            else:
                figures, scores = with_full_model(again.submission, again.scores, one.full)
                entry = replace(entry, submission=figures, scores=scores, status="recomputed")
    return notes.found, entry if notes.clean else None


def _recompute(
    path: Path, submission: Submission, record: BenchmarkRecord, notes: Notes
) -> tuple[Recomputed, dict[str, str]] | None:
    """Figures computed again from the tables beside a submission."""
    for name, file in (("per_query", per_query_path(path)), ("kept", kept_path(path))):
        if unsafe(file, path.parents[3]) is not None:
            notes.error(name, f"{file.name} is a link", "put the file itself there")
        elif file_checksum(file) != getattr(submission, name):
            notes.error(name, f"{file.name} is not the file that was submitted: its checksum differs", "restore it")
    try:
        rows, kept = read_per_query(path), read_kept(path)
    except TableError as error:
        notes.error("per_query", printable(error, 400), AGAIN)
        return None
    judged = {name: record.judged[name] for name in record.judged if name in record.data_sets}
    if unjudged := sorted({cell.data_set for cell in submission.cells} - judged.keys()):
        notes.warn("benchmark", f"nothing can be computed again: no qrels of {unjudged[0]} are pinned", "pin them")
        return None
    vectors, again = check_kept(submission, kept, judged, notes), check_per_query(submission, rows, judged, notes)
    return None if again is None else (again, vectors)


def _full_model(checking: _Checking, record: BenchmarkRecord, benchmark: str, backbone: str) -> PinnedFullModel | None:
    """The pinned full model of a backbone, read and computed again once; None if there is none, or no good one."""
    pins, key = checking.pins.get(benchmark), (benchmark, backbone)
    if pins is None or backbone not in pins.full_models:
        return None
    if key not in checking.full_models:
        path = checking.root / benchmark / backbone / FULL
        notes, found = checking.about(path), None
        if reason := next((why for e in ENDINGS if (why := unsafe(path.with_suffix(e), checking.root))), None):
            notes.error("path", reason, "restore what `harness pin` wrote")
        elif (submission := read_full_model(path, pins.full_models[backbone], notes)) is not None:
            found = _recompute(path, submission, record, notes)
        whole = found is not None and notes.clean
        checking.full_models[key] = PinnedFullModel(found[0].submission, found[0].scores, found[1]) if whole else None  # type: ignore[index]
    return checking.full_models[key]


def _check_together(checking: _Checking) -> None:
    notes_of = {notes.file: notes for notes in checking.notes}
    peers = [Peer(e.submission, e.scores, notes_of[e.path], e.rankings, e.content) for e in checking.entries]
    for name, record in checking.records.items():
        if record is not None:
            here = [peer for peer in peers if peer.submission.benchmark.name == name]
            check_against_full_and_random(here, record)
    known = {name: record for name, record in checking.records.items() if record is not None}
    check_copies(peers, checking.known)
    agree = reproductions([peer for peer in peers if peer.notes.clean], known)
    checking.entries = [
        replace(entry, status="reproduced", reproduced_by=agree[entry.submission.id])
        if entry.submission.id in agree and entry.ranked
        else entry
        for entry in checking.entries
        if notes_of[entry.path].clean
    ]
    checking.entries = [_with_verification(checking, entry, notes_of[entry.path]) for entry in checking.entries]


def _with_verification(checking: _Checking, entry: CheckedSubmission, notes: Notes) -> CheckedSubmission:
    """The highest rung, for who was measured again by a maintainer and has not changed since."""
    record = checking.measured_again.get(entry.submission.id)
    if record is None or not entry.ranked:
        return entry
    if not still_holds(record, read_submission(entry.path), entry.path):
        what = f"{record.by} verified other content under this id on {record.on}: it changed since"
        notes.warn(
            "status", what, "a maintainer runs `harness reproduce` again, or takes it out of measured-again.json"
        )
        return entry
    return replace(entry, status="verified")


def _record(checking: _Checking, name: str) -> BenchmarkRecord | None:
    """The record of a benchmark, read and checked once."""
    if name not in checking.records:
        home = checking.root / name
        about = checking.about(home / BENCHMARK)
        found = checked_benchmark(home, about)
        if name in checking.pins:
            check_pinned_files(home, checking.pins[name], about)
        checking.records[name] = found if about.clean else None
    return checking.records[name]


def _with_warnings(entries: Iterable[CheckedSubmission], notes: Iterable[Notes]) -> list[CheckedSubmission]:
    warnings = {n.file: tuple(f"{p.field}: {p.what}" for p in n.found if p.level == "warning") for n in notes}
    return [replace(entry, warnings=warnings[entry.path]) for entry in entries]
