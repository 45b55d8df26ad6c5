"""Reports of `harness verify-backbone` that a maintainer signed, in `submissions/verified.json`: shown on the board.

A report comes from whoever has the weights and a GPU, so it is read as everything from outside is. Recording one is a
maintainer's act, as pinning is.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, RootModel

from harness.files import alone_with, write_atomically
from harness.submissions.folder import VERIFIED, read_model, to_json
from harness.submissions.problems import Notes, SubmissionError
from harness.submissions.schema import Count, Percent, Strict, Text, Word
from pruners.core.errors import PruneBoardError


class ReportedCheck(Strict):
    """One question, and what was found."""

    name: Word
    verdict: Literal["passed", "failed", "not done"]
    detail: Text


class ReportedFigure(Strict):
    """The full model on one task, in %."""

    task: Word
    ours: Percent
    official: Percent | None
    """MTEB's; None if it has none."""
    tolerance: Percent
    queries: Count


class ReportFile(Strict):
    """What `harness verify-backbone --out FILE` writes."""

    backbone: Word
    checkpoint: Word
    revision: Word
    dtype: Word
    device: Word
    checks: Annotated[tuple[ReportedCheck, ...], Field(strict=False, max_length=50)]
    figure: ReportedFigure | None
    libraries: Annotated[dict[Word, Word], Field(max_length=20)]
    day: Annotated[date, Field(strict=False)]
    format: Literal[1]

    @property
    def failed(self) -> list[str]:
        return [check.name for check in self.checks if check.verdict == "failed"]

    @property
    def passed(self) -> int:
        return sum(check.verdict == "passed" for check in self.checks)

    @property
    def not_done(self) -> list[str]:
        return [check.name for check in self.checks if check.verdict == "not done"]


class SignedReport(ReportFile):
    """A report, and who recorded it."""

    by: Word
    """The maintainer."""
    on: Annotated[date, Field(strict=False)]
    """The day on which it was recorded."""

    @property
    def summary(self) -> str:
        """In a few words, for lists."""
        told = f"{self.passed} checks on {self.device} ({self.dtype}), {self.day}; recorded by {self.by}"
        if self.figure is None or self.figure.official is None:
            return f"{told}; no figure measured"
        return f"{told}; {self.figure.task} {self.figure.ours:.1f}, MTEB {self.figure.official:.1f}"


class SignedReports(RootModel[list[SignedReport]]):
    """The newest last."""


def read_verified(root: Path, notes: Notes) -> list[SignedReport]:
    """The signed reports in a folder of submissions; none if the file cannot be read, which is said."""
    path = root / VERIFIED
    if not path.exists() and not path.is_symlink():
        return []
    try:
        found: list[SignedReport] = read_model(path, SignedReports).root
    except SubmissionError as error:
        for where, what in error.problems:
            notes.error(where, what, "`harness pin REPORT.json` writes it")
        return []
    for report in found:
        if report.failed:
            notes.error(report.backbone, f"failed a check: {report.failed[0]}", "only what passed is recorded")
    return [report for report in found if not report.failed]


def record(root: Path, path: Path, by: str, day: date) -> SignedReport:
    """Sign a report and keep it in place of an older one of the same checkpoint on the same device."""
    report: ReportFile = read_model(path, ReportFile)
    if report.failed or not report.passed:
        raise PruneBoardError(f"{path}: {report.backbone} did not pass ({', '.join(report.failed) or 'no check done'})")
    with alone_with(root):
        notes = Notes(root / VERIFIED, [])
        before = read_verified(root, notes)
        if not notes.clean:
            raise SubmissionError(notes.file, [(problem.field, problem.what) for problem in notes.found])
        signed = SignedReport(**{name: getattr(report, name) for name in ReportFile.model_fields}, by=by, on=day)
        others = [other for other in before if _same(other) != _same(signed)]
        write_atomically(notes.file, to_json(SignedReports([*others, signed])))
    return signed


def reports_of(backbone: str, reports: Sequence[SignedReport]) -> list[SignedReport]:
    return [report for report in reports if report.backbone == backbone]


def _same(report: ReportFile) -> tuple[str, ...]:
    return report.backbone, report.checkpoint, report.revision, report.dtype, report.device
