"""`harness calibrate`: only options and what a person sees; the work is in `harness/calibration`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from harness.commands.engine_options import EngineName, RayAddress, RayGpus
from harness.console import output, people, print_rows


def calibrate(
    backbone: Annotated[str, typer.Option(help="Name, name=folder, name=id@revision, or your_file.py.")] = "nano",
    benchmark: Annotated[
        str | None,
        typer.Option(help="Calibration pairs: a name or a folder in ViDoRe's layout. Of nano: minidocs-calibration."),
    ] = None,
    pairs: Annotated[int, typer.Option(help="Calibration pairs (N in the paper).")] = 500,
    gamma: Annotated[float, typer.Option(help="Keep ratio at which layers are compared.")] = 0.10,
    rho: Annotated[float, typer.Option(help="Width of the window as a part of the depth.")] = 0.2,
    seed: Annotated[int, typer.Option(help="Draws the pairs.")] = 42,
    device: Annotated[str | None, typer.Option(help="cuda, mps or cpu; chosen by itself.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16 or float16.")] = None,
    max_visual_tokens: Annotated[int | None, typer.Option(help="At most so many visual tokens a page.")] = None,
    store: Annotated[Path | None, typer.Option(help="Folder of stores; the window is kept there too.")] = None,
    engine: EngineName = None,
    ray_address: RayAddress = None,
    ray_gpus_per_worker: RayGpus = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Find the layers that SAP should read on a backbone, and save them for `harness evaluate`.

    SR-guided window selection: the Score Retention of every layer alone over calibration pairs, its median, the
    suffix below it, and the window before that. No labels are used beyond which query was asked about which page.
    """
    from dataclasses import asdict

    import harness
    from harness.calibration.window_files import reported
    from harness.progress import bar

    made = harness.calibrate(
        backbone,
        benchmark,
        pairs=pairs,
        gamma=gamma,
        rho=rho,
        seed=seed,
        device=device,
        dtype=dtype,
        max_visual_tokens=max_visual_tokens,
        store=store,
        engine=engine,
        ray_address=ray_address,
        ray_gpus_per_worker=ray_gpus_per_worker,
        progress=None if as_json else bar,
        say=lambda text: people.print(escape(text), soft_wrap=True),
    )
    found, window, path = made.found, made.window, made.file
    known = reported(made.card)
    rows = [
        {
            "layer": layer,
            "score_retention": round(value, 4),
            "region": _region(layer, window.start, window.stop or found.boundary, found.boundary),
            "below_median": value < found.median,
        }
        for layer, value in enumerate(found.curve)
    ]
    if as_json:
        import json

        said = {"window": str(known.window), "for": known.checkpoint} if known else None
        print(json.dumps({"file": str(path), **asdict(found), "reported": said}, indent=1))
        return
    output.print(f"[bold]{escape(made.card.name)}[/]: {found.pairs} pairs of {escape(found.benchmark)}, γ = {gamma:g}")
    print_rows(rows, {"layer": "layer", "score_retention": "R(l)", "region": ""}, title="", as_json=False)
    if made.card.rows_are:
        output.print(f"layers counted here are the {made.card.rows_are}", soft_wrap=True)
    output.print(
        f"median {found.median:.4f}, l* = {found.boundary}, [bold]window {found.window}[/]"
        + (f", {found.left_out} pairs left out (full score not above zero)" if found.left_out else "")
    )
    if found.empty_suffix:
        people.print("the last layer is not below the median: no alignment region, the window ends the backbone")
    if known:
        people.print(f"the SAP paper reports {known.window} for {known.checkpoint}")
    output.print(f"saved: {escape(str(path))}", soft_wrap=True)
    people.print(f"next: harness evaluate --backbone {escape(backbone)} uses it", soft_wrap=True)


def _region(layer: int, start: int, stop: int, boundary: int) -> str:
    if start <= layer < stop:
        return "window"
    return "alignment" if layer >= boundary else ""
