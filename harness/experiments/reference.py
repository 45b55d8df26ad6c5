"""The table of experiments in docs/experiments.md, derived from the registry by `scripts/export_experiments.py`."""

from __future__ import annotations

from harness.experiments.registry import EXPERIMENTS

BEGIN, END = "<!-- experiments: begin -->", "<!-- experiments: end -->"


def experiment_table() -> str:
    """Every experiment: what it stands for, what of it comes out here, and what does not. In markdown."""
    rows = [f"| `{e.name}` | {e.stands_for} | {e.reproduces} | {e.cannot} |" for e in EXPERIMENTS.values()]
    head = ["| experiment | in the paper | comes out here | does not, or stands alone |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *rows])


def with_experiment_table(text: str) -> str:
    """A document with the table between its marks renewed."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{experiment_table()}\n\n{END}{tail}"
