"""`harness validate`: submissions checked as the leaderboard checks them; the work is in `harness/submissions`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.console import people, print_rows


def validate(
    path: Annotated[Path | None, typer.Argument(help="A submission, or a folder. Default: all.")] = None,
    against: Annotated[
        Path | None, typer.Option(help="The folder before a change: nothing may go or change unsaid.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="The account that proposes the change.")] = None,
    maintainer: Annotated[bool, typer.Option("--maintainer", help="Who proposes the change is a maintainer.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail, too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Check submissions: form, place, completeness, content; and compute their figures again from the stored rankings.

    All problems at once, each with its file, field and what to do. Nothing that was submitted is run. Exit status 1 if
    there are errors; warnings are shown on the board.
    """
    import json

    import harness

    report = harness.validate(path, against=against, by=by, maintainer=maintainer)
    problems = [
        {**problem.as_dict(), "file": _short(problem.file, report.root)}
        for problem in sorted(report.problems, key=lambda p: (p.level, str(p.file)))
    ]
    statuses: dict[str, int] = {}
    for entry in report.entries:
        statuses[entry.status] = statuses.get(entry.status, 0) + 1
    failed = not report.passed or (strict and bool(problems))
    if as_json:
        print(json.dumps({"passed": not failed, "statuses": statuses, "problems": problems}, indent=1))
    else:
        if problems:
            shown = [
                {"level": p["level"], "where": [p["file"], p["field"]], "what": [p["what"], p["remedy"]]}
                for p in problems
            ]
            columns = {"level": "", "where": "file and field", "what": "what is wrong, and what to do"}
            print_rows(shown, columns, title=f"{len(problems)} problems", as_json=False, stacked=("where", "what"))
        counted = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items())) or "none valid"
        errors = sum(problem["level"] == "error" for problem in problems)
        said = f"{report.files} submissions: {counted}; {errors} errors, {len(problems) - errors} warnings"
        people.print(said, soft_wrap=True, markup=False)
    if failed:
        raise typer.Exit(1)


def _short(path: Path, root: Path) -> str:
    from harness.submissions.problems import printable

    inside = path.relative_to(root) if path.is_relative_to(root) else path
    return printable(inside, 300)
