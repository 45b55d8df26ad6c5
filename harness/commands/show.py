"""`harness show`: only options and what a person sees; the work is in `harness.show`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from harness.console import output, people


def show(
    page: Annotated[
        str | None, typer.Argument(help="Id of a page. Default: the query's gold page, or the first.")
    ] = None,
    data_set: Annotated[str | None, typer.Option(help="Where the page is, if several data sets have it.")] = None,
    pruner: Annotated[list[str] | None, typer.Option(help="As in `harness evaluate`; repeatable.")] = None,
    budgets: Annotated[str | None, typer.Option(help="standard, or fractions: 0.05,0.1,0.2.")] = None,
    query: Annotated[str | None, typer.Option(help="A query's id, or words of your own: show what it matches.")] = None,
    layers: Annotated[bool, typer.Option("--layers", help="Also attention layer by layer, with the window.")] = False,
    run: Annotated[Path | None, typer.Option(help="Methods as this run measured them, and its pages.")] = None,
    backbone: Annotated[str | None, typer.Option(help="As in `harness evaluate`. Default: nano.")] = None,
    benchmark: Annotated[str | None, typer.Option(help="Name, MTEB data set or folder. Default: minidocs.")] = None,
    calibration: Annotated[str | None, typer.Option(help="Benchmark to calibrate on. Default: its own.")] = None,
    window: Annotated[str | None, typer.Option(help="Layers for `sap` and kin: 11-14, or a file.")] = None,
    seed: Annotated[int | None, typer.Option(help="Default: 42.")] = None,
    device: Annotated[str | None, typer.Option(help="cuda, mps or cpu; chosen by itself.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16 or float16.")] = None,
    max_visual_tokens: Annotated[int | None, typer.Option(help="At most so many visual tokens a page.")] = None,
    store: Annotated[Path | None, typer.Option(help="Folder of stores.")] = None,
    out: Annotated[
        list[Path] | None, typer.Option(help="A .png, .svg or .html file; repeatable. Default: show.html.")
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
) -> None:
    """Draw a page with what methods keep of it: kept patches clear, merged ones in colours, the rest dimmed.

    Without a run, methods are calibrated here as `harness evaluate` would; a page that is in no store is encoded alone.
    """
    import harness
    from harness.progress import bar

    drawing = harness.show(
        page,
        pruner,
        data_set=data_set,
        budgets=budgets,
        query=query,
        layers=layers,
        run=run,
        backbone=backbone,
        benchmark=benchmark,
        calibration=calibration,
        window=window,
        seed=seed,
        device=device,
        dtype=dtype,
        max_visual_tokens=max_visual_tokens,
        store=store,
        progress=bar,
        say=lambda text: people.print(escape(text), soft_wrap=True),
    )
    written = [drawing.save(path) for path in out or [Path("show.html")]]
    for path in written:
        output.print(escape(str(path)), soft_wrap=True)
    if open_:
        open_in_browser(written[-1])


def open_in_browser(path: Path) -> None:
    import webbrowser

    if not webbrowser.open(path.resolve().as_uri()):
        people.print("no browser could be opened", soft_wrap=True)
