"""Bad rows are gathered and told all at once: fixing them one run at a time costs an afternoon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pruners.core.errors import PruneBoardError

SHOWN = 50


@dataclass(frozen=True)
class ImportProblem:
    """What is wrong, where: a file and, where it has rows, the row (from 1, as editors count)."""

    file: str
    row: int | None
    what: str

    def __str__(self) -> str:
        return f"{self.file}{'' if self.row is None else f', row {self.row}'}: {self.what}"


class ImportProblemsError(PruneBoardError):
    """Something to import is wrong in the places listed; nothing was written."""

    def __init__(self, problems: Sequence[ImportProblem]) -> None:
        self.problems = tuple(problems)
        lines = [f"  {problem}" for problem in self.problems[:SHOWN]]
        if len(self.problems) > SHOWN:
            lines.append(f"  and {len(self.problems) - SHOWN} more; --json lists all")
        count = f"{len(self.problems)} problem{'s' if len(self.problems) > 1 else ''}"
        super().__init__("\n".join([f"{count}, so nothing was written:", *lines]))
