"""Write the table of experiments in docs/experiments.md from the registry: `python scripts/export_experiments.py`."""

from __future__ import annotations

from pathlib import Path

from harness.experiments.reference import with_experiment_table
from harness.files import write_atomically

DOCS = Path(__file__).parents[1] / "docs" / "experiments.md"


def main() -> None:
    write_atomically(DOCS, with_experiment_table(DOCS.read_text(encoding="utf-8")).encode())
    print(DOCS)


if __name__ == "__main__":
    main()
