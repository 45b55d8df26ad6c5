"""`harness list`: what there is, and what each needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.console import print_rows

app = typer.Typer(help="Show what there is, and what each needs.", no_args_is_help=True)

SHOWN_DIM = 128  # numbers in a vector of ColPali and its kin

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
def codecs(as_json: Json = False) -> None:
    """Codecs: how each vector of an index can be stored, and what that takes."""
    from pruners.core.codec_catalog import codec_catalogue, read_codecs

    rows = []
    for entry in codec_catalogue().values():
        required = [parameter for parameter in entry.parameters if "=" not in parameter]
        text = entry.name + (f"({SHOWN_DIM // 4})" if required else "")
        (codec,) = read_codecs(text)
        rows.append(
            {
                "name": entry.name,
                "parameters": list(entry.parameters),
                "summary": entry.summary,
                "paper": entry.options.get("paper", ""),
                "learns": codec.needs_calibration,
                "shown": text,
                "bytes_per_vector": codec.row(SHOWN_DIM).itemsize,
                "shared_bytes": codec.shared_bytes(SHOWN_DIM),
                "source": entry.source,
                "place": entry.place,
            }
        )
    for row in [] if as_json else rows:
        learns = ["learns from calibration pages"] if row["learns"] else []
        given = [f"parameters: {', '.join(row['parameters'])}"] if row["parameters"] else []
        row["about"] = [row["summary"], *filter(None, [row["paper"]]), *given, *learns]
    columns = {"shown": "codec", "bytes_per_vector": "bytes", "shared_bytes": "shared", "about": "what it stores"}
    title = f"{len(rows)} codecs; bytes of a vector of {SHOWN_DIM} numbers, and once for all pages"
    print_rows(rows, columns, title=title, as_json=as_json, stacked=("about",))


@app.command()
def backbones(
    backbone: Annotated[Path | None, typer.Option(help="A file with more backbones; it is read, not run.")] = None,
    as_json: Json = False,
) -> None:
    """Backbones: built in, installed, and in the file named with --backbone. Facts are of the default checkpoint."""
    from harness.verification.listing import rows

    found = rows(backbone)
    for row in [] if as_json else found:
        form = f"{row['name']}:ID" if row["name"] in ("mteb", "st") else f"{row['name']}=FOLDER"
        row["about"] = [row["checkpoint"] or f"name one: {form}", *row["gives"]]
        row["proof"] = [row["figure"] or "no published figure", row["verified"] or "verified nowhere yet"]
    columns = {"name": "backbone", "about": "default checkpoint, and what it gives"}
    columns |= {"proof": "the figure that verifies it, and where it has been verified"}
    print_rows(found, columns, title=f"{len(found)} backbones", as_json=as_json, stacked=("about", "proof"))


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
    """Benchmarks and their tasks, and whether they are on this machine. Any folder in ViDoRe's layout is one too."""
    from harness.benchmarks.listing import rows

    found = rows()
    shown: list[dict] = []
    for row in [] if as_json else found:  # a line for each benchmark, its tasks indented below it
        if not shown or row["benchmark"] != shown[-1]["benchmark"]:
            shown.append({"benchmark": row["benchmark"], "name": [row["benchmark"] or "tasks that are not public"]})
        spoken = row["languages"] if len(row["languages"]) <= 6 else [f"{len(row['languages'])} languages"]
        about = [", ".join(spoken), f"revision {row['revision'][:7]}" if row["revision"] else ""]
        about += ["pages have texts"] if row.get("page_texts") else []
        about += [f"superseded by {row['superseded_by']}"] if row.get("superseded_by") else []
        lines = [f"  {row['task']}", *(["    " + "; ".join(filter(None, about))] if any(about) else [])]
        shown.append({**row, "name": lines})
    columns = {"name": "benchmark and tasks", "pages": "pages", "queries": "queries", "cached": "here"}
    print_rows(found if as_json else shown, columns, title="benchmarks", as_json=as_json, stacked=("name",))
