"""What `harness evaluate --dry-run` prints: data sets in a table, the rest in lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

from harness.console import output, print_rows

if TYPE_CHECKING:
    from harness.evaluation.plan import Plan


def show_plan(plan: Plan, as_json: bool) -> None:
    """Exit status 1 if something will stop the work."""
    from harness.evaluation.plan import size

    problems = plan.problems()
    if as_json:
        print(json.dumps(plan.as_dict(), indent=1))
    else:
        rows = [
            {
                "name": row.name,
                "purpose": row.purpose,
                "here": "yes" if row.here else "to be fetched",
                "pages": row.pages,
                "queries": row.queries,
                "encoded": row.encoded,
                "store": size(row.bytes) if row.bytes else "",
            }
            for row in plan.data_sets
        ]
        columns = {"name": "data set", "purpose": "to", **{key: key for key in list(rows[0])[2:]}}
        print_rows(rows, columns, title="nothing was fetched, nothing was written", as_json=False)
        weights = "" if plan.weights is None else f"a checkpoint of {size(plan.weights)}, "
        lines = [
            plan.sentence(),
            f"{plan.methods} methods, {plan.workers} workers; {weights}{size(plan.memory)} of memory free",
            *(f"will have no results: {why}" for why in plan.unfit),
            *([f"to be fetched: {'; '.join(plan.missing)}"] if plan.missing else []),
        ]
        for line in lines:
            output.print(escape(line), soft_wrap=True)
        for problem in problems:
            output.print(f"[bold red]problem[/]: {escape(problem)}", soft_wrap=True)
    if problems:
        raise typer.Exit(1)
