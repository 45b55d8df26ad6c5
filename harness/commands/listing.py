"""`harness list`: what there is, and what each needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.console import print_rows

app = typer.Typer(help="Show what there is, and what each needs.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@app.command()
def pruners(
    pruner: Annotated[
        list[Path] | None, typer.Option(help="A Python file with more pruners (repeatable); it is read, not run.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Pruning methods: built in, installed, and in the files named with --pruner."""
    from pruners.core.catalog import catalogue, kind

    rows = [
        {
            "name": entry.name,
            "kind": kind(entry),
            "needs": list(entry.options.get("needs", ())),
            "summary": entry.summary,
            "paper": entry.options.get("paper", ""),
            "parameters": list(entry.parameters),
            "source": entry.source,
            "place": entry.place,
        }
        for entry in sorted(catalogue(pruner or []).values(), key=lambda e: (e.source != "built-in", e.source, e.name))
    ]
    for row in [] if as_json else rows:  # two lines a method, so that 80 columns are enough
        row["how"] = [row["kind"], *(["needs " + ", ".join(row["needs"])] if row["needs"] else [])]
        origin = [] if row["source"] == "built-in" else [f"from {row['source']}"]
        row["about"] = [row["summary"], *filter(None, [row["paper"]]), *origin]
    columns = {"name": "pruner", "how": "output, budget", "about": "what it does, and whose it is"}
    print_rows(rows, columns, title=f"{len(rows)} pruners", as_json=as_json, stacked=("how", "about"))


@app.command()
def backbones(
    backbone: Annotated[Path | None, typer.Option(help="A file with more backbones; it is read, not run.")] = None,
    as_json: Json = False,
) -> None:
    """Backbones: built in, installed, and in the file named with --backbone. Facts are of the default checkpoint."""
    from harness.backbones.registry import catalogue

    rows = [
        {"name": entry.name, **entry.options, "source": entry.source, "place": entry.place}
        for entry in catalogue(backbone).values()
    ]
    columns = {"name": "backbone", "checkpoint": "checkpoint", "layers": "layers", "dim": "dim", "signals": "signals"}
    print_rows(rows, columns, title=f"{len(rows)} backbones", as_json=as_json)


@app.command()
def budgets(as_json: Json = False) -> None:
    """Budgets: the fractions of a page's vectors kept. 1.0, the full model, always runs beside them."""
    from pruners.core.budget import STANDARD, SWEEP, keep_count

    rows = [
        {
            "budget": round(budget, 4),
            "set": "standard, sweep" if budget in STANDARD else "sweep",
            "of_1024": keep_count(budget, 1024),
        }
        for budget in SWEEP
    ]
    print_rows(rows, {"budget": "budget", "set": "set", "of_1024": "kept of 1,024"}, title="budgets", as_json=as_json)


@app.command()
def experiments(as_json: Json = False) -> None:
    """Experiments: the tables and figures of the SAP paper that `harness experiment` makes."""
    from harness.commands.experiment import show_list

    show_list(as_json)


@app.command()
def benchmarks(as_json: Json = False) -> None:
    """Benchmarks that come with the project. Any folder in ViDoRe's layout is one too: --benchmark FOLDER."""
    from pyarrow.parquet import ParquetFile

    from harness.benchmarks.embedded import NAMES, data_set_folders

    rows = []
    for name, parts in NAMES.items():
        for folder in data_set_folders(name) if parts == (name,) else []:
            files = {
                part: [ParquetFile(file) for file in sorted((folder / part).glob("test-*.parquet"))]
                for part in ("corpus", "queries", "qrels")
            }
            count = {part: sum(file.metadata.num_rows for file in found) for part, found in files.items()}
            spoken = {str(row) for file in files["queries"] for row in file.read(columns=["language"])["language"]}
            rows.append({"benchmark": name, "data_set": folder.name, **count, "languages": sorted(spoken)})
    columns = {"benchmark": "benchmark", "data_set": "data set", "corpus": "pages", "queries": "queries"}
    print_rows(rows, columns | {"qrels": "qrels", "languages": "languages"}, title="benchmarks", as_json=as_json)
