"""One submission checked by itself, against what it shares with others: its benchmark, the pins, the full model.

Nothing that was submitted is run. What submissions say of each other is in `comparisons.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.files import file_checksum
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
from harness.submissions.folder import BENCHMARK, ENDINGS, FULL, read_submission, unsafe
from harness.submissions.pins import (
    BenchmarkPin,
    PinnedFullModel,
    check_full_model,
    check_pinned_files,
    read_full_model,
    with_full_model,
)
from harness.submissions.problems import Notes, Problem, SubmissionError, crash, printable
from harness.submissions.report import CheckedSubmission
from harness.submissions.schema import Submission
from harness.submissions.size_checks import check_size
from harness.submissions.table_checks import Recomputed, check_kept, check_per_query
from harness.submissions.tables import kept_path, per_query_path, read_kept, read_per_query


@dataclass
class Shared:
    """What the submissions of a folder have in common, each read once."""

    root: Path
    pins: dict[str, BenchmarkPin] = field(default_factory=dict)
    records: dict[str, BenchmarkRecord | None] = field(default_factory=dict)
    """Benchmarks; None where one cannot be used."""
    full_models: dict[tuple[str, str], PinnedFullModel | None] = field(default_factory=dict)
    """(benchmark, backbone) -> what is pinned; None where it is no good."""
    notes: list[Notes] = field(default_factory=list)

    def about(self, path: Path) -> Notes:
        self.notes.append(Notes(path, []))
        return self.notes[-1]

    def record(self, name: str) -> BenchmarkRecord | None:
        """The record of a benchmark, read and checked once."""
        if name not in self.records:
            home = self.root / name
            about = self.about(home / BENCHMARK)
            found = checked_benchmark(home, about)
            if name in self.pins:
                check_pinned_files(home, self.pins[name], about)
            self.records[name] = found if about.clean else None
        return self.records[name]

    def full_model(self, record: BenchmarkRecord, benchmark: str, backbone: str) -> PinnedFullModel | None:
        """The pinned full model of a backbone, read and computed again once; None if there is none, or no good one."""
        pins, key = self.pins.get(benchmark), (benchmark, backbone)
        if pins is None or backbone not in pins.full_models:
            return None
        if key not in self.full_models:
            path = self.root / benchmark / backbone / FULL
            notes, found = self.about(path), None
            if reason := next((why for e in ENDINGS if (why := unsafe(path.with_suffix(e), self.root))), None):
                notes.error("path", reason, "restore what `harness pin` wrote")
            elif (submission := read_full_model(path, pins.full_models[backbone], notes)) is not None:
                found = _recompute(path, submission, record, notes)
            whole = found is not None and notes.clean
            self.full_models[key] = PinnedFullModel(found[0].submission, found[0].scores, found[1]) if whole else None  # type: ignore[index]
        return self.full_models[key]


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


def check_alone(shared: Shared, path: Path) -> tuple[list[Problem], CheckedSubmission | None]:
    """All that is said of a submission, and, if no error is among it, its entry."""
    notes = Notes(path, [])
    try:
        one = _read(shared, path, notes)
        return (notes.found, None) if one is None else _check_one(one)
    except Exception as error:  # whatever it is, it is this submission's, and the others are checked
        return [*notes.found, crash(path, error)], None


def _read(shared: Shared, path: Path, notes: Notes) -> _Read | None:
    """A submission and its benchmark; None if it is no submission."""
    if (reason := unsafe(path, shared.root)) is not None:
        notes.error("path", reason, "put the file itself there")
        return None
    try:
        submission = read_submission(path)
    except SubmissionError as error:
        for where, what in error.problems:
            notes.error(where, what, "docs/submissions.md describes every field")
        return None
    inside = path.resolve().relative_to(shared.root.resolve())
    benchmark, backbone = submission.benchmark.name, submission.backbone.name
    record, full = shared.record(benchmark), None
    if submission.claim != "reported" and record is not None:
        full = shared.full_model(record, benchmark, backbone)
    return _Read(path, inside, submission, record, full, notes)


def _check_one(one: _Read) -> tuple[list[Problem], CheckedSubmission | None]:
    """A submission that could be read."""
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
