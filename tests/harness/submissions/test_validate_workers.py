"""How checking runs: spread over processes without a difference, and without torch."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from spoiling import Spoiled, cell

from harness.submissions.report import CheckedSubmission, ValidationReport
from harness.submissions.validation import validate


@pytest.mark.parametrize("workers", [2, 5])
def test_the_number_of_processes_changes_nothing(
    spoiled: Spoiled, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    spoiled.json("random", cell(realised=0.5), forge_id=True)
    spoiled.rows("sap", lambda frame: frame.drop(index=3))
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    alone = validate(spoiled.root)
    monkeypatch.setattr(os, "cpu_count", lambda: workers)
    spread = validate(spoiled.root)
    assert {problem.file.parent.name for problem in alone.problems if problem.level == "error"} == {"random", "sap"}
    assert spread.problems == alone.problems
    assert shown(spread) == shown(alone)


def shown(report: ValidationReport) -> list[tuple]:
    """Entries as values, which arrays cannot be compared as."""
    return [(replace(entry, scores=None), values(entry)) for entry in report.entries]


def values(entry: CheckedSubmission) -> dict[tuple, tuple]:
    table = entry.scores
    return (
        {} if table is None else {key: (names, table.per_query(key).tolist()) for key, names in table.queries.items()}
    )


@pytest.mark.slow
def test_checking_needs_no_torch(submitted: Path) -> None:
    """So that a pull request is checked in seconds, without the libraries that run models."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom harness.submissions.validation import validate\n"
        f"assert validate(Path({str(submitted)!r})).passed\nassert 'torch' not in sys.modules, 'torch'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ})
