"""Submissions for the leaderboard: checked, with the status they have really reached; broken ones are left out."""

from __future__ import annotations

from pathlib import Path

from harness.submissions.entry import Entry
from harness.submissions.validate import Report, validate


def load(folder: Path) -> Report:
    """Valid submissions of a folder as entries, and all problems: errors name the files that are left out."""
    return validate(folder)


def load_entries(folder: Path) -> list[Entry]:
    """The valid submissions of a folder, in a fixed order."""
    return list(load(folder).entries)
