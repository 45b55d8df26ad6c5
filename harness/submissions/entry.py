"""Reading submissions: a JSON file, the tables beside it, and where they lie. Everything here comes from outside."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pydantic

from harness.submissions.rows import ScoresOf
from harness.submissions.schema import Submission
from pruners.core.errors import PruneBoardError

FOLDER = Path(__file__).parents[2] / "submissions"
"""The project's own, in a checkout."""
MAX_JSON = 4 * 2**20
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class SubmissionError(PruneBoardError):
    """A submission cannot be read. `problems` has a field and a sentence for each thing that is wrong."""

    def __init__(self, path: Path, problems: list[tuple[str, str]]) -> None:
        (where, what), count = problems[0], len(problems)
        more = f" ({count} problems in all)" if count > 1 else ""
        super().__init__(f"{path}: {f'{where}: ' if where else ''}{what}{more}")
        self.problems = problems


@dataclass(frozen=True)
class CheckedSubmission:
    """A submission as found on disk. `status` is the rung of the ladder that it has really reached.

    Where NDCG was computed again, `submission` and `scores` have the values that came out.
    """

    path: Path
    submission: Submission
    scores: ScoresOf | None
    """Of each query; None where figures are reported."""
    status: str
    """reported, self-reported, recomputed or reproduced."""
    warnings: tuple[str, ...] = ()
    coverage: Mapping[float, tuple[int, int]] = field(default_factory=dict)
    """Budget -> complete data sets (every language there), and data sets of the benchmark: 13 of 14."""
    reproduced_by: tuple[str, ...] = ()
    """Ids of submissions by others that measured the same and agree."""

    def is_complete(self, budget: float) -> bool:
        """Only complete rows are averaged and ranked."""
        done, all_of_them = self.coverage.get(budget, (0, 1))
        return done == all_of_them


def in_checkout() -> bool:
    """Whether the project's own submissions are here: an installed package does not bring them."""
    return (FOLDER / "schema.json").is_file()


def own_folder(instead: str) -> Path:
    """The project's own submissions; without a checkout, an error that says what to do `instead`."""
    if not in_checkout():
        raise PruneBoardError(
            f"the project's submissions lie in its repository, not in an installed package: {instead}"
        )
    return FOLDER


def submission_path(submission: Submission) -> Path:
    """Where a submission belongs, below the folder of submissions."""
    s = submission
    return Path(s.benchmark.name) / s.backbone.name / s.method.name / f"{s.id}.json"


def read_submission(path: Path) -> Submission:
    """The submission in a JSON file; if it is none, everything that is wrong with it at once."""
    return read_model(path, Submission)


def find_submissions(folder: Path) -> list[Path]:
    """All submissions below a folder, in a fixed order."""
    return sorted(folder.glob("*/*/*/*.json"))


def read_model(path: Path, model: type[pydantic.BaseModel]) -> Any:
    """A file from outside as a pydantic model: of bounded size, without repeated keys or numbers that are none."""
    try:
        if path.stat().st_size > MAX_JSON:
            raise SubmissionError(path, [("", f"the file has more than {MAX_JSON // 2**20} MB")])
        text = path.read_bytes()
        json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
        return model.model_validate_json(text)
    except OSError as error:
        raise SubmissionError(path, [("", f"cannot be read: {error.strerror}")]) from error
    except pydantic.ValidationError as error:
        found = [(".".join(map(str, e["loc"])), _sentence(e)) for e in error.errors(include_url=False)]
        raise SubmissionError(path, [(printable(where), what) for where, what in found]) from error
    except (ValueError, RecursionError) as error:  # also JSONDecodeError, UnicodeDecodeError
        raise SubmissionError(path, [("", f"is no valid JSON: {printable(str(error))}")]) from error


def printable(text: object, limit: int = 120) -> str:
    """Text from outside for a terminal or a log: no control characters, no reordering marks, not endless."""
    plain = _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", str(text))
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"


def _sentence(error: Any) -> str:
    given = "" if error["type"] == "missing" else f"; it is {printable(repr(error['input']), 60)}"
    return f"{error['msg'][0].lower()}{error['msg'][1:]}{given}"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} occurs twice")
    return found


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number")
