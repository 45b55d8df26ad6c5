"""What is wrong with a submission, in one line: where, what, and what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pruners.core.errors import PruneBoardError
from pruners.core.plain_text import printable


@dataclass(frozen=True)
class Problem:
    """An error keeps a submission off the board; a warning is shown beside it."""

    level: Literal["error", "warning"]
    file: Path
    field: str
    what: str
    remedy: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "file": str(self.file)}


@dataclass(frozen=True)
class Notes:
    """Collects the problems of one file."""

    file: Path
    found: list[Problem]

    def error(self, field: str, what: str, remedy: str = "") -> None:
        self.found.append(Problem("error", self.file, field, what, remedy))

    def warn(self, field: str, what: str, remedy: str = "") -> None:
        self.found.append(Problem("warning", self.file, field, what, remedy))

    @property
    def clean(self) -> bool:
        return not any(problem.level == "error" for problem in self.found)


def crash(file: Path, error: Exception) -> Problem:
    """A submission on which a check or a page failed as nobody thought it would: its own error, not everybody's."""
    what = printable(f"cannot be used: {type(error).__name__}: {error}", 300)
    return Problem("error", file, "", what, "tell the maintainers: this is also a fault of the program")


class SubmissionError(PruneBoardError):
    """A submission cannot be read. `problems` has a field and a sentence for each thing that is wrong."""

    def __init__(self, path: Path, problems: list[tuple[str, str]]) -> None:
        (where, what), count = problems[0], len(problems)
        more = f" ({count} problems in all)" if count > 1 else ""
        super().__init__(f"{path}: {f'{where}: ' if where else ''}{what}{more}")
        self.problems = problems
