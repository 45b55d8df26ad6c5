"""`harness evaluate`: only options and what a person sees; the work is in `harness.evaluate`."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from harness.benchmarks.embedded import NANO_NOTE
from harness.console import NAME_WIDTH, output, people, print_rows

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
    rate: Annotated[float | None, typer.Option(help="For --dry-run: pages a second, if known from elsewhere.")] = None,
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
    hands = workers or os.cpu_count() or 1
    if dry_run:
        from harness.commands.evaluate_plan import show_plan

        return show_plan(harness.plan(settings, store=store, workers=hands, rate=rate), as_json)
    if not quiet:
        _announce(settings, hands, folder)
    found = harness.evaluate(
        config=settings,
        store=store,
        out=folder,
        workers=hands,
        mteb_results=mteb_results,
        sandbox=sandbox,
        readable=readable or (),
        progress=None if quiet or as_json else bar,
        say=None if quiet else lambda text: people.print(escape(text), soft_wrap=True),
    )
    if as_json:
        import json

        report = {"run": str(folder), "rows": found.rows, "failures": found.failures, "remarks": found.remarks}
        print(json.dumps(report, indent=1))
    else:
        _show(settings, found.rows)
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


def _announce(settings: Config, workers: int, folder: Path) -> None:
    from pruners.core.catalog import expressions

    named = settings.pruners and _counted(len(expressions(settings.pruners)[0]), "method")
    methods = named or "every built-in method"
    people.print(
        f"[bold]{escape(settings.backbone)}[/] on [bold]{escape(settings.benchmark)}[/]: {methods} at "
        f"{', '.join(f'{b:.4g}' for b in settings.budgets)}, {_counted(workers, 'worker')} -> {escape(str(folder))}",
        soft_wrap=True,
    )
    if settings.backbone == "nano":
        from harness.benchmarks.embedded import NAMES

        at_home = settings.benchmark in NAMES
        people.print(f"[dim]{NANO_NOTE}[/]" if at_home else f"[yellow]{NANO_ELSEWHERE}[/]", soft_wrap=True)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _show(settings: Config, rows: list[dict]) -> None:
    """One table a budget, best first. Methods that share the best rank are bold: they cannot be told apart."""
    from rich.table import Table

    from harness.runs.table import table_rows

    full = rows[0]
    output.print(
        f"\n[bold]full model[/]: NDCG@5 {full['ndcg@5']:.4f}, {full['vectors_per_page']:.0f} vectors "
        f"({settings.profile}) and {full['bytes_per_page'] / 1000:.1f} KB a page"
    )
    shown = table_rows(rows)
    partnered = [row for row in shown if "partner of" in row]
    for budget in settings.budgets:
        table = Table(title=f"budget {budget:.4g}", box=None, pad_edge=False, title_justify="left", header_style="dim")
        for heading in ("rank", "method", "NDCG@5", "retention [95 %]", "SR", "kept", "KB", "ms"):
            name = heading == "method"  # long ones go on in the next line: what tells two apart must be seen
            table.add_column(heading, justify="left" if name else "right", no_wrap=not name, overflow="fold")
        table.columns[1].min_width = NAME_WIDTH
        for row in (row for row in shown[1:] if row["budget"] == budget and row not in partnered):
            table.add_row(
                str(row["rank"] or "–"),
                escape(row["method"]),
                f"{row['NDCG@5']:.4f}",
                f"{row['retention']:.1f} [{row['low']:.1f}, {row['high']:.1f}]".replace("[", r"\["),
                f"{row['SR']:.3f}",
                f"{row['kept']:.1f}" + ("!" if row["missed"] else ""),
                f"{row['KB']:.2f}",
                "" if row["ms"] is None else f"{row['ms']:.1f}",
                style="bold" if row["rank"] == 1 else None,
            )
        output.print(table)
        output.print()
    _show_partners(partnered)
    output.print(
        "[dim]retention: NDCG@5 in % of the full model's, mean over data sets. SR: Score Retention. kept: % of "
        "vectors. KB, ms: index size and CPU time of pruning a page. Equal ranks: the 95 % interval of the difference "
        "to the first of them contains 0. –: a diagnostic, unranked. !: an adaptive method missed its budget.[/]"
    )


def _show_partners(rows: list[dict]) -> None:
    """Methods with a threshold of their own, each above the fixed-ratio methods at the same realised ratio."""
    if not rows:
        return
    title = "thresholds of their own, and fixed-ratio partners at the same realised ratio on every data set"
    output.print(f"[bold]{title}[/]")
    columns = {
        "method": "method",
        "kept": "kept",
        "ndcg": "NDCG@5",
        "retention": "retention \\[95 %]",
        "gap": "minus it",
    }
    shown = []
    for row in rows:
        gap = "{minus it:+.1f} [{gap low:+.1f}, {gap high:+.1f}]"
        shown.append(
            {
                "method": row["method"],
                "kept": f"{row['kept']:.2f}",
                "ndcg": f"{row['NDCG@5']:.4f}",
                "retention": f"{row['retention']:.1f} [{row['low']:.1f}, {row['high']:.1f}]",
                "gap": "" if row["gap low"] is None else gap.format_map(row),
            }
        )
    print_rows(shown, columns, title="", as_json=False)
    output.print()
