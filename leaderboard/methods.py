"""Method pages: what the catalogue knows of a built-in method, and every result of that name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from harness.submissions.report import CheckedSubmission
from leaderboard.lines import Line
from leaderboard.rows import Row
from leaderboard.views import View
from leaderboard.words import budget_name, file_name, fixed, titled
from pruners.core.budget import STANDARD
from pruners.core.catalog import catalogue, formula, kind, words
from pruners.core.codec_catalog import DEFAULT

OUT = "runs/again"


@dataclass(frozen=True)
class Facts:
    """From the method's own file: its decorator and docstring, not a copy of them."""

    kind: str
    words: tuple[str, ...]
    formula: tuple[str, ...]
    parameters: tuple[str, ...]
    needs: tuple[str, ...]
    paper: str


@dataclass(frozen=True)
class Note:
    warning: bool
    places: list[str]


@dataclass(frozen=True)
class MethodPage:
    """A name, what it is, and its lines in all views."""

    name: str
    title: str
    facts: Facts | None
    results: tuple[tuple[View, Line], ...]

    @property
    def slug(self) -> str:
        return file_name(self.name)

    @property
    def entry(self) -> CheckedSubmission:
        """The latest submission that measured it, else the latest: it says most of how the method was run."""
        entries = [line.entry for _, line in self.results if line.codec == DEFAULT] or [
            line.entry for _, line in self.results
        ]
        return max(entries, key=lambda e: (e.status != "reported", e.submission.origin.submitted, e.submission.id))

    @property
    def budgets(self) -> set[float]:
        """Of the submission that `entry` is."""
        return {budget for _, line in self.results if line.entry is self.entry for budget in line.rows}

    @property
    def notes(self) -> list[tuple[str, Note]]:
        """What submitters and the checks say, each once, with the places it is said of."""
        found: dict[str, Note] = {}
        for view, line in self.results:
            place = f"{titled(view.benchmark)}, {titled(view.backbone)}"
            said = [(line.entry.submission.origin.note, False), *((text, True) for text in line.entry.warnings)]
            others = [row for row in line.rows.values() if row.budget not in STANDARD]
            if others:
                said.append(("At other budgets: " + ", ".join(_at_budget(row) for row in others), False))
            for text, warning in said:
                if text:
                    found.setdefault(text, Note(warning, [])).places.append(place)
        return list(found.items())

    @property
    def nano(self) -> bool:
        return any(view.nano for view, _ in self.results)


def method_pages(views: Sequence[View]) -> list[MethodPage]:
    found: dict[str, list[tuple[View, Line]]] = {}
    for view in views:
        for line in view.lines:
            found.setdefault(line.base, []).append((view, line))
    return [_page(name, tuple(found[name])) for name in sorted(found)]


def _page(name: str, results: tuple[tuple[View, Line], ...]) -> MethodPage:
    page = MethodPage(name, name, None, results)
    method = page.entry.submission.method
    return MethodPage(name, method.title, facts(method.expression) or facts(name), results)


def _at_budget(row: Row) -> str:
    return f"{budget_name(row.budget)}: {fixed(row.retention) if row.complete else row.coverage}"


_catalogue = cache(catalogue)  # looks for plug-ins every time, and a large board asks for every method


@cache
def facts(text: str) -> Facts | None:
    """What is known of a built-in method, by its name or an expression that begins with it."""
    head = re.match(r"[A-Za-z_]\w*", text)
    entry = _catalogue().get(head[0]) if head else None
    if entry is None or entry.source != "built-in":
        return None
    needs = tuple(entry.options.get("needs", ()))
    paper = entry.options.get("paper", "")
    return Facts(kind(entry), tuple(words(entry)), tuple(formula(entry)), entry.parameters, needs, paper)


def expression(entry: CheckedSubmission) -> str | None:
    """What `--pruner` takes; none for a method that this project does not hold. A paper's method goes by its name here.

    It is meant to be copied into a shell, so nothing but plain expressions of built-in methods is ever offered.
    """
    method = entry.submission.method
    text = method.name if entry.status == "reported" else method.expression
    return text if facts(text) is not None and re.fullmatch(r"[\w(),=.\- ]+", text, re.ASCII) else None


def command(entry: CheckedSubmission, budgets: Sequence[float]) -> str | None:
    """The command that measures it again, on that backbone and benchmark, at those budgets."""
    s, text = entry.submission, expression(entry)
    if text is None:
        return None
    options = ["--backbone", s.backbone.name, "--benchmark", s.benchmark.name, "--pruner", text]
    return "harness evaluate " + shlex.join([*options, "--budgets", ",".join(f"{b:g}" for b in budgets), "--out", OUT])


def load_words(entry: CheckedSubmission) -> str | None:
    """The Python that loads it as that command measured it."""
    text = expression(entry)
    return None if text is None else f'import harness\n\nmethod = harness.load_run("{OUT}").method("{text}")'
