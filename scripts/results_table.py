"""A run folder's figures as a Markdown table: `python scripts/results_table.py runs/demo`."""

import sys
from pathlib import Path

from harness.evaluation.config import read_config
from harness.evaluation.methods import choose_methods
from harness.evaluation.run_folder import RunFolder
from harness.evaluation.summary import summarise


def main(folder: Path) -> None:
    run, config = RunFolder(folder), read_config(folder / "config.toml")
    tasks = list(run.read_json("stores.json"))
    rows = summarise(run, tasks, choose_methods(config.pruners, config.trials), config.budgets)
    cells = {(row["method"], row["budget"]): row for row in rows}
    middle = sorted(config.budgets)[len(config.budgets) // 2]
    methods = sorted({m for m, b in cells if b < 1}, key=lambda m: -cells[m, middle]["retention"])
    print("| method | " + " | ".join(f"γ {b:.4g}: retention [95 %], SR" for b in config.budgets) + " |")
    print("| --- |" + " --- |" * len(config.budgets))
    for method in methods:
        print(f"| `{method}` | " + " | ".join(_cell(cells[method, b]) for b in config.budgets) + " |")


def _cell(row: dict) -> str:
    low, high = row["retention_interval"]
    rank = "" if row["rank"] is None else f" ({row['rank']})"
    return f"{row['retention']:.1f} [{low:.1f}, {high:.1f}], {row['score_retention']:.3f}{rank}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
