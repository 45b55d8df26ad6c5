"""What a check of submissions found: every problem, and those without an error, with the status each has reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.metrics.results_table import ResultsTable
from harness.submissions.problems import Problem
from harness.submissions.schema import BenchmarkFacts, Submission


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
