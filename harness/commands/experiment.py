"""`harness experiment`: only options and what a person sees; the work is in `harness/experiments`."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from harness.commands.engine_options import EngineName, RayAddress, RayGpus
from harness.console import output, people, print_rows
from pruners.core.errors import PruneBoardError

if TYPE_CHECKING:
    from harness.experiments.run import Done
    from harness.experiments.workbench import ExperimentSettings

SHOWN = 40  # rows on screen; all are in the files


def experiment(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="Which one, `all`, or `join`; --list names them.")] = None,
    folders: Annotated[list[Path] | None, typer.Argument(help="For `join`: finished folders, one a backbone.")] = None,
    listing: Annotated[bool, typer.Option("--list", help="What there is, and what it stands for.")] = False,
    backbone: Annotated[str, typer.Option(help="Name, name=folder, name=id@revision, or your_file.py.")] = "nano",
    benchmark: Annotated[str, typer.Option(help="Name or folder in ViDoRe's layout.")] = "minidocs",
    calibration: Annotated[str | None, typer.Option(help="Benchmark to calibrate on. Default: its own.")] = None,
    second_calibration: Annotated[str | None, typer.Option(help="Another one, for calibration-robustness.")] = None,
    attention_from: Annotated[str | None, typer.Option(help="Base model for base-probe: folder or id@rev.")] = None,
    window: Annotated[str | None, typer.Option(help="Layers of `sap`: 11-14, or a file of `calibrate`.")] = None,
    pairs: Annotated[int | None, typer.Option(help="Calibration pairs. Default: 500.")] = None,
    sizes: Annotated[str | None, typer.Option(help="N of calibration-robustness: 50,100,200,500,1000.")] = None,
    lambdas: Annotated[str | None, typer.Option(help="λ of docpruner-native: -0.5,-0.25,0,0.5,1,1.5.")] = None,
    tokens: Annotated[str | None, typer.Option(help="Visual tokens of peak-memory: 1024,3072,6144.")] = None,
    trials: Annotated[int | None, typer.Option(help="Seeds of stochastic methods. Default: as each says.")] = None,
    timed_pages: Annotated[int | None, typer.Option(help="Pages that pruning-latency times. Default: 64.")] = None,
    timed_queries: Annotated[int | None, typer.Option(help="Queries storage-retrieval times. Default: all.")] = None,
    pruner: Annotated[str | None, typer.Option(help="For storage-retrieval: 'kmeans | int8'. Default: sap.")] = None,
    seed: Annotated[int | None, typer.Option(help="Default: 42.")] = None,
    device: Annotated[str | None, typer.Option(help="cuda, mps or cpu; chosen by itself.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16 or float16.")] = None,
    max_visual_tokens: Annotated[int | None, typer.Option(help="At most so many visual tokens a page.")] = None,
    store: Annotated[Path | None, typer.Option(help="Folder of stores.")] = None,
    out: Annotated[Path | None, typer.Option(help="Default: experiments; of `join`: experiments/joint.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Also what is finished.")] = False,
    workers: Annotated[int | None, typer.Option(help="Processes. Default: one a core.")] = None,
    engine: EngineName = None,
    ray_address: RayAddress = None,
    ray_gpus_per_worker: RayGpus = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Make one of the SAP paper's tables or figures on any backbone and benchmark, or all of them.

    Each writes a table (CSV, JSON, LaTeX) and a figure (SVG, PNG). What is finished is not done again; what was
    interrupted goes on. Exit status 1 if one of several could not be run.

    `join FOLDER FOLDER …` makes the tables and figures of several backbones from the folders of each.
    """
    if listing or name is None:
        show_list(as_json)
        return
    if name == "join":
        from harness.commands.experiment_join import experiment_join

        experiment_join(context, folders or [], out, as_json)
        return
    if folders:
        raise PruneBoardError(f"only `harness experiment join` takes folders, and {name} is given {len(folders)}")
    out = out or Path("experiments")
    given: dict[str, Any] = {
        "backbone": backbone,
        "benchmark": benchmark,
        "calibration": calibration,
        "second_calibration": second_calibration,
        "attention_from": attention_from,
        "window": window,
        "pairs": pairs,
        "sizes": _numbers("--sizes", sizes, int),
        "lambdas": _numbers("--lambdas", lambdas, float),
        "tokens": _numbers("--tokens", tokens, int),
        "trials": trials,
        "timed_pages": timed_pages,
        "timed_queries": timed_queries,
        "pruner": pruner,
        "seed": seed,
        "device": device,
        "dtype": dtype,
        "max_visual_tokens": max_visual_tokens,
    }
    import harness
    from harness.experiments.workbench import ExperimentSettings
    from harness.progress import display
    from harness.progress import quiet as no_bar

    settings = ExperimentSettings(**{key: value for key, value in given.items() if value is not None})
    hush = quiet or as_json
    with nullcontext(no_bar) if hush else display() as progress:
        done = harness.experiment(
            None if name == "all" else [name],
            out=out,
            store=store,
            workers=workers,
            engine=engine,
            ray_address=ray_address,
            ray_gpus_per_worker=ray_gpus_per_worker,
            again=again,
            progress=progress,
            say=None if hush else lambda text: people.print(escape(text), soft_wrap=True),
            **given,
        )
    _report(done, settings, as_json)
    if any(item.failure for item in done):
        raise typer.Exit(1)


def show_list(as_json: bool) -> None:
    from harness.experiments.registry import EXPERIMENTS

    told = ("name", "about", "stands_for", "reproduces", "cannot")
    rows: list[dict[str, Any]] = [{key: getattr(e, key) for key in told} for e in EXPERIMENTS.values()]
    for row in [] if as_json else rows:
        row["what"] = [row["about"], row["stands_for"]]
    columns = {"name": "experiment", "what": "what it shows, and what of the SAP paper it stands for"}
    print_rows(rows, columns, title=f"{len(rows)} experiments", as_json=as_json, stacked=("what",))
    if not as_json:
        output.print("`join FOLDER FOLDER …` makes the tables and figures of several backbones from finished folders")


def _report(done: list[Done], settings: ExperimentSettings, as_json: bool) -> None:
    from harness.experiments.run import stored_rows

    if as_json:
        import json

        found: list[dict[str, Any]] = [
            {"experiment": item.experiment.name, "failure": item.failure}
            if item.failure
            else {**stored_rows(item), "files": {ending: str(path) for ending, path in item.files.items()}}
            for item in done
        ]
        print(json.dumps(found if len(found) > 1 else found[0], indent=1, ensure_ascii=False))
        return
    for item in done:
        if item.failure:
            people.print(
                f"[bold red]could not be run[/] {item.experiment.name}: {escape(item.failure)}", soft_wrap=True
            )
            continue
        if len(done) == 1:
            _show(item)
        state = "" if item.outcome else " (finished before)"
        files = escape(str(item.files["png"].with_suffix("")))
        output.print(f"{item.experiment.name}{state}: {files}.{{csv,json,tex,svg,png}}", soft_wrap=True)
    if settings.backbone == "nano":
        from harness.benchmarks.embedded import NANO_NOTE

        people.print(f"[dim]{NANO_NOTE}[/]", soft_wrap=True)


def _show(item: Done) -> None:
    """The table of one experiment, from what was written."""
    from harness.experiments.run import stored_rows

    found = stored_rows(item)
    columns = dict(found["columns"])
    if any("difference" in row for row in found["rows"]):
        columns |= {"paper": "paper", "difference": "ours − paper"}
    present = {key: title for key, title in columns.items() if any(key in row for row in found["rows"])}
    rows = [{key: _figure(row.get(key)) for key in present} for row in found["rows"][:SHOWN]]
    output.print(f"[bold]{item.experiment.name}[/]: {escape(item.experiment.stands_for)}", soft_wrap=True)
    print_rows(rows, present, title="", as_json=False)
    if len(found["rows"]) > SHOWN:
        output.print(f"… {len(found['rows']) - SHOWN} more rows in the files")
    for key, value in found["facts"].items():
        if not isinstance(value, (dict, list)):
            output.print(f"{key}: {_figure(value)}")
    for note in found["notes"]:
        output.print(f"[dim]{escape(note)}[/]", soft_wrap=True)


def _figure(value: Any) -> Any:
    return f"{value:.4g}" if isinstance(value, float) else value


def _numbers(option: str, text: str | None, kind: type) -> tuple | None:
    if text is None:
        return None
    try:
        return tuple(kind(part) for part in text.split(","))
    except ValueError:
        raise PruneBoardError(f"{option} takes numbers with commas between them, not {text!r}") from None
