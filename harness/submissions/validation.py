"""Submissions checked as the leaderboard checks them: all problems at once, and nothing that was submitted is run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.files import file_checksum
from harness.parquet import TableError
from harness.submissions.benchmark import PinnedBenchmark, checked_benchmark, coverage
from harness.submissions.checks import (
    AGAIN,
    check_cells,
    check_claim,
    check_code,
    check_content,
    check_official,
    check_place,
    check_size,
)
from harness.submissions.comparisons import Peer, check_against_full_and_random, reproductions
from harness.submissions.folder import BENCHMARK, check_history, check_tree, find_submissions, read_submission, unsafe
from harness.submissions.problems import Notes, Problem, SubmissionError, crash, printable
from harness.submissions.schema import Submission
from harness.submissions.table_checks import Recomputed, check_kept, check_per_query
from harness.submissions.tables import ScoresOf, kept_path, per_query_path, read_kept, read_per_query
from harness.workers import spread


@dataclass(frozen=True)
class CheckedSubmission:
    """A submission as found on disk. `status` is the rung of the ladder that it has really reached.

    Where NDCG was computed again, `submission` and `scores` have the values that came out.
    """

    path: Path
    submission: Submission
    scores: ScoresOf | None
    """Of each query; None where figures are reported."""
    status: str
    """reported, self-reported, recomputed or reproduced."""
    warnings: tuple[str, ...] = ()
    coverage: Mapping[float, tuple[int, int]] = field(default_factory=dict)
    """Budget -> complete data sets (every language there), and data sets of the benchmark: 13 of 14."""
    reproduced_by: tuple[str, ...] = ()
    """Ids of submissions by others that measured the same and agree."""

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

    @property
    def passed(self) -> bool:
        return not any(problem.level == "error" for problem in self.problems)


@dataclass
class _Checking:
    """The state of one validation."""

    root: Path
    pinned: dict[str, PinnedBenchmark | None] = field(default_factory=dict)
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
    pinned: PinnedBenchmark | None
    notes: Notes


def validate(root: Path, files: Sequence[Path] | None = None, base: Path | None = None) -> ValidationReport:
    """Check `files`, or everything below the folder of submissions `root`; `base` is the state that it grew from."""
    checking = _Checking(root)
    wanted = find_submissions(root) if files is None else list(files)
    found = [_read(checking, path) for path in (wanted if files is None else dict.fromkeys([*_context(files), *files]))]
    _check_each(checking, [one for one in found if one is not None])
    _check_together(checking)
    if files is None:
        check_tree(root, checking.about)
        if base is not None:
            check_history(root, base, checking.about)
    shown = {path.resolve() for path in wanted} | {(root / name).resolve() for name in checking.pinned}
    problems = [
        problem
        for notes in checking.notes
        for problem in notes.found
        if files is None or problem.file.resolve() in shown or problem.file.parent.resolve() in shown
    ]
    entries = [entry for entry in checking.entries if files is None or entry.path.resolve() in shown]
    return ValidationReport(tuple(_with_warnings(entries, checking.notes)), tuple(problems), len(wanted))


def _context(files: Sequence[Path]) -> list[Path]:
    """Submissions of the same backbones and benchmarks: random's row, and what is reproduced, are among them."""
    homes = {path.parent.parent for path in files if (path.parent.parent.parent / BENCHMARK).is_file()}
    return [path for home in sorted(homes) for path in sorted(home.glob("*/*.json"))]


def _read(checking: _Checking, path: Path) -> _Read | None:
    """A submission and its benchmark; None if it is no submission."""
    notes = checking.about(path)
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
    return _Read(path, inside, submission, _pinned(checking, submission.benchmark.name), notes)


def _check_each(checking: _Checking, found: Sequence[_Read]) -> None:
    """Every submission by itself, spread over the cores; their order stays."""
    with spread(lambda i: _check_alone(found[i]), range(len(found)), os.cpu_count() or 1) as results:
        for one, (problems, entry) in zip(found, results, strict=True):
            one.notes.found[:] = problems  # a worker has notes of its own
            if entry is not None:
                checking.entries.append(entry)


def _check_alone(one: _Read) -> tuple[list[Problem], CheckedSubmission | None]:
    try:
        return _check_one(one)
    except Exception as error:  # whatever it is, it is this submission's, and the others are checked
        return [*one.notes.found, crash(one.path, error)], None


def _check_one(one: _Read) -> tuple[list[Problem], CheckedSubmission | None]:
    """All that is said of a submission, and, if no error is among it, its entry."""
    path, submission, pinned, notes = one.path, one.submission, one.pinned, one.notes
    check_place(submission, one.inside, notes)
    check_claim(submission, path, notes)
    if pinned is None:
        what = f"{submission.benchmark.name}/benchmark.json cannot be used"
        notes.error("benchmark.name", what, "`harness submit` writes it from a run")
        return notes.found, None
    check_cells(submission, pinned, notes)
    check_content(submission, pinned, notes)
    check_size(submission, notes)
    check_code(submission, notes)
    check_official(submission, pinned, notes)
    entry = CheckedSubmission(path, submission, None, submission.claim, coverage=coverage(submission, pinned))
    if submission.claim != "reported":
        entry = replace(entry, status="self-reported")
        if notes.clean:
            found = _recompute(path, submission, pinned, notes)
            if found is not None and notes.clean:
                entry = replace(entry, submission=found.submission, scores=found.scores, status="recomputed")
    return notes.found, entry if notes.clean else None


def _recompute(path: Path, submission: Submission, pinned: PinnedBenchmark, notes: Notes) -> Recomputed | None:
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
    judged = {name: pinned.judged[name] for name in pinned.judged if name in pinned.data_sets}
    if unjudged := sorted({cell.data_set for cell in submission.cells} - judged.keys()):
        notes.warn("benchmark", f"nothing can be computed again: no qrels of {unjudged[0]} are pinned", "pin them")
        return None
    check_kept(submission, kept, judged, notes)
    return check_per_query(submission, rows, judged, notes)


def _check_together(checking: _Checking) -> None:
    notes_of = {notes.file: notes for notes in checking.notes}
    peers = [Peer(entry.submission, entry.scores, notes_of[entry.path]) for entry in checking.entries]
    for name, pinned in checking.pinned.items():
        if pinned is not None:
            here = [peer for peer in peers if peer.submission.benchmark.name == name]
            check_against_full_and_random(here, pinned)
    known = {name: pinned for name, pinned in checking.pinned.items() if pinned is not None}
    agree = reproductions(peers, known)
    checking.entries = [
        replace(entry, status="reproduced", reproduced_by=agree[entry.submission.id])
        if entry.submission.id in agree
        else entry
        for entry in checking.entries
        if notes_of[entry.path].clean
    ]


def _pinned(checking: _Checking, name: str) -> PinnedBenchmark | None:
    """The pinned benchmark, read and checked once."""
    if name not in checking.pinned:
        home = checking.root / name
        about = checking.about(home / BENCHMARK)
        checking.pinned[name] = checked_benchmark(home, about)
    return checking.pinned[name]


def _with_warnings(entries: Iterable[CheckedSubmission], notes: Iterable[Notes]) -> list[CheckedSubmission]:
    warnings = {n.file: tuple(f"{p.field}: {p.what}" for p in n.found if p.level == "warning") for n in notes}
    return [replace(entry, warnings=warnings[entry.path]) for entry in entries]
