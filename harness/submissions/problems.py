"""What is wrong with a submission, in one line: where, what, and what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal


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
