"""What the site is built from: the submissions in a folder, checked, and runs of one's own for a preview."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from harness.submissions.folder import BENCHMARK, read_model
from harness.submissions.problems import Problem
from harness.submissions.schema import BenchmarkFacts, Origin
from harness.submissions.tables import scores_of
from harness.submissions.validation import CheckedSubmission, validate
from pruners.core.errors import PruneBoardError

if TYPE_CHECKING:
    from harness.submissions.run_facts import FinishedRun

PREVIEW = "a local run, not submitted"


@dataclass(frozen=True)
class Gathered:
    """Entries, the benchmarks they are measured against, and why others were left out."""

    entries: list[CheckedSubmission]
    benchmarks: dict[str, BenchmarkFacts] = field(default_factory=dict)
    """As pinned; a benchmark that is not there is what its submissions say it is."""
    left_out: list[Problem] = field(default_factory=list)


def gather(submissions: Path | None, runs: Sequence[Path]) -> Gathered:
    """All valid submissions of a folder, if there is one, and those that the runs would make."""
    found = _submitted(submissions) if submissions else Gathered([])
    for folder in _run_folders(runs):
        from harness.submissions.run_facts import FinishedRun  # needs torch, submissions do not

        run = FinishedRun(folder)
        benchmark = run.benchmark().facts
        found.benchmarks.setdefault(benchmark.name, benchmark)
        found.entries.extend(_preview(folder, run))
    return found


def _submitted(folder: Path) -> Gathered:
    if not folder.is_dir():
        raise PruneBoardError(f"there is no folder {folder}; name one with --submissions")
    report = validate(folder)
    benchmarks = {}
    for name in sorted({entry.submission.benchmark.name for entry in report.entries}):
        if (file := folder / name / BENCHMARK).is_file():
            benchmarks[name] = read_model(file, BenchmarkFacts)
    errors = [problem for problem in report.problems if problem.level == "error"]
    return Gathered(list(report.entries), benchmarks, errors)


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
        yield CheckedSubmission(folder / f"{made.submission.id}.json", made.submission, scores, "self-reported")
