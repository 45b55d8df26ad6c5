"""How much of a benchmark a submission has, budget by budget. A row with 13 of 14 data sets is never ranked."""

from __future__ import annotations

from harness.submissions.pinned import Pinned
from harness.submissions.schema import Submission


def coverage(submission: Submission, pinned: Pinned) -> dict[float, tuple[int, int]]:
    """Budget -> data sets with all their languages, and data sets of the benchmark.

    Papers print the mean over a data set's languages: in reported figures a cell without a language stands for all.
    """
    found: dict[float, dict[str, set[str]]] = {}
    for cell in submission.cells:
        found.setdefault(cell.budget, {}).setdefault(cell.data_set, set()).add(cell.language)
    wanted = {name: set(data_set.languages) or {""} for name, data_set in pinned.data_sets.items()}
    return {
        budget: (
            sum(_whole(submission, here.get(name, set()), languages) for name, languages in wanted.items()),
            len(wanted),
        )
        for budget, here in sorted(found.items())
    }


def _whole(submission: Submission, found: set[str], wanted: set[str]) -> bool:
    return found == wanted or (submission.claim == "reported" and found == {""})


def missing(submission: Submission, pinned: Pinned, budget: float) -> list[str]:
    """What a row lacks, in words."""
    here: dict[str, set[str]] = {}
    for cell in submission.cells:
        if cell.budget == budget:
            here.setdefault(cell.data_set, set()).add(cell.language)
    lacking = []
    for name, data_set in pinned.data_sets.items():
        if name not in here:
            lacking.append(name)
        elif not (submission.claim == "reported" and here[name] == {""}):
            lacking += [f"{name} in {language}" for language in data_set.languages if language not in here[name]]
    return lacking
