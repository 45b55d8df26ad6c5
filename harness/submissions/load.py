"""Submissions for the leaderboard: checked, with the status they have really reached; broken ones are left out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.submissions.entry import CheckedSubmission
from harness.submissions.schema import Origin
from harness.submissions.validate import ValidationReport, validate


def load(folder: Path) -> ValidationReport:
    """Valid submissions of a folder as entries, and all problems: errors name the files that are left out."""
    return validate(folder)


def load_entries(folder: Path) -> list[CheckedSubmission]:
    """The valid submissions of a folder, in a fixed order."""
    return list(load(folder).entries)


def preview_runs(runs: Sequence[Path]) -> ValidationReport:
    """Runs of one's own as the leaderboard would show them, without submitting anything."""
    from harness.submissions.finished_run import FinishedRun  # needs torch, checking does not
    from harness.submissions.submit import WantedMethods, make
    from harness.submissions.write import write, write_benchmark

    origin = Origin(submitter="a run of your own", submitted=date.today())
    with TemporaryDirectory() as scratch:
        for folder in runs:
            run = FinishedRun(folder)
            write_benchmark(run, Path(scratch))
            for made in make(run, WantedMethods(origin)):
                write(made, Path(scratch))
        return load(Path(scratch))
