"""`harness evaluate`: only options and what a person sees; the work is in `harness.evaluate`."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from harness.benchmarks.embedded import NANO_NOTE
from harness.commands.engine_options import EngineName, RayAddress, RayGpus
from harness.commands.evaluate_tables import show_run
from harness.console import output, people
from pruners.core.errors import PruneBoardError

if TYPE_CHECKING:
    from harness.evaluation.config import Config

NANO_ELSEWHERE = (
    "nano has learned to read minidocs' drawn pages and nothing else: on other pages it retrieves badly, so that "
    "retention says little. Use colpali, colqwen2 or another visual backbone, or minilm where pages have text"
)


def evaluate(
    backbone: Annotated[
        str | None, typer.Option(help="Name, name=folder, name=id@revision, or your_file.py. Default: nano.")
    ] = None,
    benchmark: Annotated[str | None, typer.Option(help="Name, MTEB data set or folder. Default: minidocs.")] = None,
    calibration: Annotated[
        str | None, typer.Option(help="Benchmark to calibrate on, or held-out. Default: its own.")
    ] = None,
    pruner: Annotated[
        list[str] | None,
        typer.Option(help="Name, name(param=value), name(param=1|2|3) or file.py; repeatable. Default: all."),
    ] = None,
    codec: Annotated[
        str | None,
        typer.Option(help="How vectors are stored, each method in each way: float16,int8,binary. Default: float16."),
    ] = None,
    partner: Annotated[
        list[str] | None,
        typer.Option(help="Fixed-ratio method evaluated at the ratio that docpruner(z=…) keeps. Default: its scorer."),
    ] = None,
    budgets: Annotated[str | None, typer.Option(help="standard, sweep, or fractions: 0.05,0.1,0.2.")] = None,
    trials: Annotated[int | None, typer.Option(help="Seeds of stochastic methods. Default: as each says.")] = None,
    window: Annotated[
        str | None, typer.Option(help="Layers for `sap` and kin: 11-14, or a file of `harness calibrate`.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Index visual tokens only (visual, the default), or the prompt's too (native).")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Default: 42.")] = None,
    device: Annotated[str | None, typer.Option(help="cuda, mps or cpu; chosen by itself.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16 or float16.")] = None,
    max_visual_tokens: Annotated[int | None, typer.Option(help="At most so many visual tokens a page.")] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings, such as a run's own.")] = None,
    store: Annotated[Path | None, typer.Option(help="Folder of stores.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder. Default: runs/<what it is>.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes. Default: one a core.")] = None,
    engine: EngineName = None,
    ray_address: RayAddress = None,
    ray_gpus_per_worker: RayGpus = None,
    mteb_results: Annotated[
        Path | None, typer.Option(help="Also let mteb score every cell, and keep its result files here.")
    ] = None,
    sandbox: Annotated[
        str, typer.Option(help="For methods of files: auto (where it can be had), on (all but built-in), or off.")
    ] = "auto",
    readable: Annotated[
        list[Path] | None, typer.Option(help="A file or folder that a method in the sandbox may read; repeatable.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no plan.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what is needed, what is missing and what it will take.")
    ] = False,
    rate: Annotated[float | None, typer.Option(help="For --dry-run: pages a second of one device, if known.")] = None,
) -> None:
    """Measure pruning methods: retrieval quality, score retention and size at fixed budgets.

    With no options: the embedded retriever and benchmark, every method, budgets 0.05, 0.10 and 0.20. Killed and started
    again, it goes on where it was. Exit status 1 if a method failed; the others' results are kept.
    """
    import harness
    from harness.evaluation.evaluate import run_name
    from harness.progress import bar

    settings = harness.settings(
        config,
        backbone=backbone,
        benchmark=benchmark,
        calibration=calibration,
        pruners=pruner,
        codecs=codec,
        partners=partner,
        budgets=budgets,
        trials=trials,
        window=window,
        profile=profile,
        seed=seed,
        device=device,
        dtype=dtype,
        max_visual_tokens=max_visual_tokens,
    )
    folder = out or Path("runs") / run_name(settings)
    where: dict[str, Any] = {"store": store, "workers": workers, "engine": engine}
    where |= {"ray_address": ray_address, "ray_gpus_per_worker": ray_gpus_per_worker}
    if rate is not None and not dry_run:
        raise PruneBoardError("--rate is for --dry-run: a run takes the time that it takes")
    if dry_run:
        from harness.commands.evaluate_plan import show_plan

        return show_plan(harness.plan(settings, rate=rate, **where), as_json)
    if not quiet:
        hands = "ray" if engine == "ray" else _counted(workers or os.cpu_count() or 1, "worker")
        _announce(settings, hands, folder)
    found = harness.evaluate(
        config=settings,
        out=folder,
        **where,
        mteb_results=mteb_results,
        sandbox=sandbox,
        readable=readable or (),
        progress=None if quiet or as_json else bar,
        say=None if quiet else lambda text: people.print(escape(text), soft_wrap=True),
    )
    if as_json:
        import json

        report = {"run": str(folder), "rows": found.rows, "failures": found.failures, "remarks": found.remarks}
        if settings.codecs:
            report["same_bytes"] = found.same_bytes()
        print(json.dumps(report, indent=1))
    else:
        show_run(settings, found.rows)
        output.print(f"run folder: {escape(str(folder))}", soft_wrap=True)
        if mteb_results:
            output.print(f"mteb's own result files: {escape(str(mteb_results))}", soft_wrap=True)
    for remark in found.remarks:
        people.print(f"[yellow]note[/] {escape(remark)}", soft_wrap=True)
    for method, reason in found.failures.items():
        people.print(f"[bold red]failed[/] {escape(method)}: {escape(reason)}", soft_wrap=True)
    if not as_json and len(found.rows) > 1:  # beside the full model something was measured
        place = shlex.quote(str(folder))
        people.print(
            f"[dim]next[/]: harness leaderboard --runs {escape(place)} --open   [dim]see it[/]\n"
            f"      harness explain {escape(place)} --open   [dim]why methods lose[/]\n"
            f"      harness submit {escape(place)} --submitter 'Your name'   [dim]hand it in[/]",
            soft_wrap=True,
        )
    if found.failures:
        raise typer.Exit(1)


def _announce(settings: Config, hands: str, folder: Path) -> None:
    from pruners.core.catalog import expressions

    named = settings.pruners and _counted(len(expressions(settings.pruners)[0]), "method")
    methods = named or "every built-in method"
    if settings.codecs:
        methods += f", stored as {escape(', '.join(settings.codecs))},"
    people.print(
        f"[bold]{escape(settings.backbone)}[/] on [bold]{escape(settings.benchmark)}[/]: {methods} at "
        f"{', '.join(f'{b:.4g}' for b in settings.budgets)}, {hands} -> {escape(str(folder))}",
        soft_wrap=True,
    )
    if settings.backbone == "nano":
        from harness.benchmarks.embedded import NAMES

        at_home = settings.benchmark in NAMES
        people.print(f"[dim]{NANO_NOTE}[/]" if at_home else f"[yellow]{NANO_ELSEWHERE}[/]", soft_wrap=True)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
