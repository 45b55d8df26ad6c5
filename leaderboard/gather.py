"""What the site is built from: the submissions in a folder, and runs of one's own for a preview."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.submissions.entry import Entry, find_submissions, read_entry
from pruners.core.errors import PruneBoardError


def gather(submissions: Path, runs: Sequence[Path]) -> list[Entry]:
    """All entries: those of the folder as checked, and those of the runs, which nobody has submitted yet."""
    if not submissions.is_dir():
        raise PruneBoardError(f"there is no folder {submissions}; name one with --submissions")
    return [read_entry(path) for path in find_submissions(submissions)]
