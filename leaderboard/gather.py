"""What the site is built from: the submissions in a folder, checked, and runs of one's own for a preview.

Everything is read in batches, a benchmark on a backbone at a time, so that memory holds one of them whatever there is
in all. A batch has a stamp of the files it would read: if that is the one of the last build, it is not read again.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from harness.submissions.folder import BENCHMARK, VERIFIED, find_submissions, read_model, read_submission
from harness.submissions.problems import Notes, Problem, SubmissionError
from harness.submissions.report import CheckedSubmission
from harness.submissions.schema import BenchmarkFacts, Origin
from harness.submissions.tables import kept_path, per_query_path, scores_of
from harness.submissions.validation import validate
from harness.submissions.verified import SignedReport, read_verified
from leaderboard.groups import LOCAL
from pruners.core.errors import PruneBoardError

if TYPE_CHECKING:
    from harness.submissions.run_facts import FinishedRun

PREVIEW = "you"
"""The submitter of what is not submitted."""


@dataclass(frozen=True)
class Batch:
    """Editions of one benchmark on one backbone: files to read, and submissions that are in memory already."""

    name: str
    folder: Path | None
    files: tuple[Path, ...]
    ready: tuple[CheckedSubmission, ...]

    def load(self) -> tuple[list[CheckedSubmission], list[Problem]]:
        """Valid submissions, and why others are left out."""
        if not self.files or self.folder is None:
            return list(self.ready), []
        report = validate(self.folder, self.files)
        return [*report.entries, *self.ready], [p for p in report.problems if p.level == "error"]

    def stamp(self) -> str | None:
        """Changes with whatever it would read; none if there is something that is in no file of the folder."""
        if self.ready:
            return None
        digest = hashlib.sha256()
        around = {folder for path in self.files for folder in (path.parents[1], path.parents[2], path.parents[3])}
        for path in [*self.files, *(file for folder in sorted(around) for file in sorted(folder.glob("*.*")))]:
            plain = path.is_file() and not path.is_symlink()  # a folder, or a link to anything, may bear the name too
            digest.update(f"{path}:".encode() + (path.read_bytes() if plain else b"no file"))
        for table in (table for path in self.files for table in (per_query_path(path), kept_path(path))):
            facts = table.stat() if table.is_file() else None
            digest.update(f"{facts and (facts.st_size, facts.st_mtime_ns)};".encode())
        return digest.hexdigest()


@dataclass(frozen=True)
class Gathered:
    """Where submissions are, and those that are in memory: runs of one's own, and what tests make up."""

    entries: list[CheckedSubmission]
    benchmarks: dict[str, BenchmarkFacts] = field(default_factory=dict)
    """As pinned; a benchmark that is not there is what its submissions say it is."""
    folder: Path | None = None

    def verified(self) -> list[SignedReport]:
        """Backbones that were verified; what is wrong with the file is told when submissions are validated."""
        return read_verified(self.folder, Notes(self.folder / VERIFIED, [])) if self.folder else []

    def batches(self) -> list[Batch]:
        files: dict[str, list[Path]] = {}
        ready: dict[str, list[CheckedSubmission]] = {}
        for path in find_submissions(self.folder) if self.folder else ():
            files.setdefault(_batch_name(path.parents[2].name, path.parents[1].name), []).append(path)
        for entry in sorted(self.entries, key=lambda entry: entry.submission.id):
            s = entry.submission
            ready.setdefault(_batch_name(s.benchmark.name, s.backbone.name), []).append(entry)
        return [
            Batch(name, self.folder, tuple(files.get(name, ())), tuple(ready.get(name, ())))
            for name in sorted({*files, *ready})
        ]

    def load(self) -> list[CheckedSubmission]:
        """All valid submissions at once, for who has room for them."""
        return [entry for batch in self.batches() for entry in batch.load()[0]]

    def shelves(self) -> list[tuple[str, str, str]]:
        """(kind, backbone, benchmark) of every view, told before anything is checked."""
        found = {
            (e.submission.backbone.kind, e.submission.backbone.name, e.submission.benchmark.name) for e in self.entries
        }
        homes: dict[Path, Path] = {}
        for path in find_submissions(self.folder) if self.folder else ():
            homes.setdefault(path.parents[1], path)
        for home, path in homes.items():
            try:
                kind = read_submission(path).backbone.kind
            except SubmissionError:  # it will be left out, and its problems told, when its batch is read
                continue
            found.add((kind, home.name, home.parent.name))
        return sorted(found)


def gather(submissions: Path | None, runs: Sequence[Path]) -> Gathered:
    """The submissions of a folder, if there is one, and those that the runs would make."""
    if submissions is not None and not submissions.is_dir():
        raise PruneBoardError(f"there is no folder {submissions}; name one with --submissions")
    found = Gathered([], _pinned(submissions) if submissions else {}, submissions)
    for folder in _run_folders(runs):
        from harness.submissions.run_facts import FinishedRun  # needs torch, submissions do not

        run = FinishedRun(folder)
        benchmark = run.benchmark().facts
        found.benchmarks.setdefault(benchmark.name, benchmark)
        found.entries.extend(_preview(folder, run))
    return found


def _pinned(folder: Path) -> dict[str, BenchmarkFacts]:
    """Benchmarks as pinned. One that cannot be read is told of when its submissions are checked."""
    found = {}
    for file in sorted(folder.glob(f"*/{BENCHMARK}")):
        try:
            found[file.parent.name] = read_model(file, BenchmarkFacts)
        except SubmissionError:
            continue
    return found


def _batch_name(benchmark: str, backbone: str) -> str:
    """Editions of a benchmark are read together: rows show both retentions."""
    return f"{re.sub(r'-v[12]$', '', benchmark)}--{backbone}"


def _run_folders(paths: Sequence[Path]) -> Iterator[Path]:
    """Run folders, named themselves or by the folder they lie in."""
    for path in paths:
        found = [path] if (path / "config.toml").is_file() else sorted(p.parent for p in path.glob("*/config.toml"))
        if not found:
            raise PruneBoardError(f"{path} is no run folder and holds none; `harness evaluate --out {path}` makes one")
        yield from found


def _preview(folder: Path, run: FinishedRun) -> Iterator[CheckedSubmission]:
    """A run's methods as they would look if submitted; dated by its configuration, so that a rebuild is the same."""
    import pandas as pd

    from harness.submissions.submit import WantedMethods, new_submissions

    changed = datetime.fromtimestamp((folder / "config.toml").stat().st_mtime, UTC)
    origin = Origin(submitter=PREVIEW, submitted=date(changed.year, changed.month, changed.day))
    for made in new_submissions(run, WantedMethods(origin)):
        scores = scores_of(pd.read_parquet(io.BytesIO(made.per_query)))
        yield CheckedSubmission(folder / f"{made.submission.id}.json", made.submission, scores, LOCAL)
