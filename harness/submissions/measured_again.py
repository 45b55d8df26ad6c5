"""Verified submissions: a maintainer measured them again from scratch, and every ranking came out the same.

`submissions/measured-again.json` keeps for each id who did it, when and with what, and checksums of the submission: if
any of it changes later, the record holds no more. `harness reproduce ID --record --by NAME` writes it.
"""

from __future__ import annotations

import hashlib
from datetime import date
from pathlib import Path
from typing import Annotated

from pydantic import Field, RootModel

from harness.files import alone_with, write_atomically
from harness.submissions.folder import MEASURED_AGAIN, read_model, to_json
from harness.submissions.problems import Notes, SubmissionError
from harness.submissions.schema import Environment, Hash, Slug, Strict, Submission, Word, content_text
from harness.submissions.tables import kept_path, per_query_path


class Verification(Strict):
    """One submission, measured again."""

    by: Word
    """The maintainer."""
    on: Annotated[date, Field(strict=False)]
    """The day."""
    content: Hash
    """Of all that the id is made of."""
    files: dict[Word, Hash]
    """Of the two tables, by name."""
    rankings: Annotated[int, Field(ge=1)]
    """How many were compared."""
    near_ties: Annotated[int, Field(ge=0)]
    """How many of them had pages in another order whose scores are equal but for rounding."""
    environment: Environment
    """With what it was measured again."""


class Verifications(RootModel[dict[Slug, Verification]]):
    """By id."""


def read_measured_again(root: Path, notes: Notes) -> dict[str, Verification]:
    """What is verified in a folder of submissions; nothing if the file cannot be read, which is said."""
    path = root / MEASURED_AGAIN
    if not path.exists() and not path.is_symlink():
        return {}
    try:
        return read_model(path, Verifications).root
    except SubmissionError as error:
        for where, what in error.problems:
            notes.error(where, what, "`harness reproduce ID --record` writes it")
        return {}


def fingerprint(submission: Submission, path: Path) -> tuple[str, dict[str, str]]:
    """Checksums of a submission's content and of its tables, which a changed byte changes."""
    content = hashlib.sha256(content_text(submission).encode()).hexdigest()
    tables = {file.name: file.read_bytes() for file in (per_query_path(path), kept_path(path))}
    return f"sha256-{content}", {name: f"sha256-{hashlib.sha256(data).hexdigest()}" for name, data in tables.items()}


def still_holds(record: Verification, submission: Submission, path: Path) -> bool:
    """Whether a submission is what was verified."""
    return fingerprint(submission, path) == (record.content, record.files)


def write_measured_again(root: Path, found: dict[str, Verification]) -> None:
    """Add records, in place of earlier ones of the same ids."""
    with alone_with(root):
        notes = Notes(root / MEASURED_AGAIN, [])
        known = read_measured_again(root, notes)
        if not notes.clean:
            raise SubmissionError(root / MEASURED_AGAIN, [(p.field, p.what) for p in notes.found])
        write_atomically(root / MEASURED_AGAIN, to_json(Verifications(dict(sorted({**known, **found}.items())))))
