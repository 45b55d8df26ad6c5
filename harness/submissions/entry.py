"""Reading submissions: a JSON file, the parquet file beside it, and where both lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pydantic

from harness.submissions.schema import Submission
from pruners.core.errors import PruneBoardError

FOLDER = Path(__file__).parents[2] / "submissions"
"""The project's own, in a checkout."""


class SubmissionError(PruneBoardError):
    """A submission cannot be read."""


@dataclass(frozen=True)
class Entry:
    """A submission as found on disk. `status` is the rung of the ladder that it has really reached."""

    path: Path
    submission: Submission
    per_query: pd.DataFrame | None
    status: str
    """reported, self-reported, recomputed or reproduced."""
    warnings: tuple[str, ...] = ()


def submission_path(submission: Submission) -> Path:
    """Where a submission belongs, below the folder of submissions."""
    s = submission
    return Path(s.benchmark.name) / s.backbone.name / s.method.name / f"{s.id}.json"


def read_submission(path: Path) -> Submission:
    """The submission in a JSON file."""
    try:
        return Submission.model_validate_json(path.read_bytes())
    except OSError as error:
        raise SubmissionError(f"{path} cannot be read: {error.strerror}") from error
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise SubmissionError(f"{path}: {where}: {first['msg']} ({error.error_count()} problems in all)") from error


def read_entry(path: Path) -> Entry:
    """A submission with its per-query rows, as yet unchecked."""
    submission = read_submission(path)
    rows = path.with_suffix(".parquet")
    return Entry(path, submission, pd.read_parquet(rows) if rows.exists() else None, submission.claim)


def find_submissions(folder: Path) -> list[Path]:
    """All submissions below a folder, in a fixed order."""
    return sorted(folder.glob("*/*/*/*.json"))
