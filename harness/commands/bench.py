"""`harness bench`: benchmarks that run a peer and us in one run on the same work, and print ratios."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.console import people, print_rows

app = typer.Typer(help="Benchmarks against peers, side by side in one run.", no_args_is_help=True)

SYNTHETIC = Path("stores") / "vidore-scale"


@app.command()
def pruners(
    n: Annotated[int, typer.Option("-n", help="Vectors a page.")] = 1024,
    dim: Annotated[int, typer.Option(help="Width of a vector.")] = 128,
    repeats: Annotated[int, typer.Option(help="Pages timed for each method; the median is shown.")] = 7,
    pruner: Annotated[list[str] | None, typer.Option(help="Only these (repeatable).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Milliseconds a page on one core, all standard budgets together, with the peer library where there is one."""
    from harness.bench.pruners import COLUMNS, measure

    rows = measure(n, dim, repeats, pruner)
    print_rows(rows, COLUMNS, title=f"one page of {n} x {dim}, one core, CPU ms (median of {repeats})", as_json=as_json)


@app.command()
def capture(
    long: Annotated[bool, typer.Option(help="Also 12k tokens.")] = False,
    tokens: Annotated[list[int] | None, typer.Option(help="These lengths instead (repeatable).")] = None,
    repeats: Annotated[int, typer.Option(help="Times SDPA and ours alternate; the fastest counts.")] = 3,
    threads: Annotated[int, typer.Option(help="Threads a process; 0 for all cores.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Time and memory of capturing attention: plain SDPA, eager with all maps, eager a layer at a time, ours."""
    from harness.bench.capture import COLUMNS, LENGTHS, LONG, measure
    from harness.progress import bar

    lengths = tokens or [*LENGTHS, *([LONG] if long else [])]
    rows = measure(lengths, repeats=repeats, threads=threads, progress=bar)
    print_rows(rows, COLUMNS, title="capturing attention; x is the ratio to plain SDPA", as_json=as_json)
    if not as_json:
        people.print("extra: above the process with its model loaded and warmed up by a short page")


@app.command()
def scoring(
    pages: Annotated[int, typer.Option(help="Pages of 1,024 x 128.")] = 40,
    queries: Annotated[int, typer.Option(help="Queries.")] = 100,
    tokens: Annotated[int, typer.Option(help="Vectors a query.")] = 20,
    budgets: Annotated[str | None, typer.Option(help="sweep, or fractions: 0.1,0.5. Default: 0.05, 0.1 … 1.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Scoring 5 methods x 11 budgets: libraries cell by cell, and all cells in one sweep."""
    from harness.bench.scoring import BUDGETS, COLUMNS, METHODS, measure
    from harness.evaluation.config import parse_budgets

    chosen = BUDGETS if budgets is None else parse_budgets(budgets)
    rows = measure(pages, queries, tokens, chosen)
    size = f"{pages} pages of 1,024 x 128, {queries} queries of {tokens}"
    title = f"{len(METHODS)} methods x {len(chosen)} budgets, {size}, one thread"
    print_rows(rows, COLUMNS, title=title, as_json=as_json)


@app.command()
def codecs(
    n: Annotated[int, typer.Option("-n", help="Vectors a page.")] = 1024,
    dim: Annotated[int, typer.Option(help="Width of a vector.")] = 128,
    pages: Annotated[int, typer.Option(help="Pages of the sweep.")] = 4,
    queries: Annotated[int, typer.Option(help="Queries of the sweep.")] = 100,
    tokens: Annotated[int, typer.Option(help="Vectors a query.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Codecs beside faiss and plain numpy; all methods x budgets x 4 codecs beside one full pass and cell by cell."""
    import json

    from harness.bench.codecs import PAGE_COLUMNS, SWEEP_COLUMNS, SWEPT, measure_pages, measure_sweep
    from harness.progress import bar, quiet

    progress = quiet if as_json else bar
    rows, sweep = measure_pages(n, dim, progress), measure_sweep(pages, queries, tokens, progress)
    if as_json:
        print(json.dumps({"codecs": rows, "sweep": sweep}, indent=2))
        return
    print_rows(rows, PAGE_COLUMNS, title=f"one page of {n} x {dim}, one core, CPU ms (median)", as_json=False)
    size = f"{sweep[0]['cells']} cells ({SWEPT}) on {pages} pages of 1,024 x 128, {queries} queries of {tokens}"
    print_rows(sweep, SWEEP_COLUMNS, title=size, as_json=False)


@app.command()
def calibration(
    pairs: Annotated[int, typer.Option(help="Pairs, each of a page of its own.")] = 500,
    layers: Annotated[int, typer.Option(help="Layers of the backbone.")] = 36,
    vectors: Annotated[int, typer.Option(help="Vectors of 128 a page.")] = 1024,
    folder: Annotated[Path, typer.Option(help="Where the synthetic store goes: 0.2 GB.")] = SYNTHETIC.parent / "bench",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """The curve R(l) of SR-guided window selection from a synthetic store: seconds of one process."""
    from harness.bench.calibration import COLUMNS, measure
    from harness.progress import bar, quiet

    rows = measure(folder, pairs, layers, vectors, quiet if as_json else bar)
    print_rows(rows, COLUMNS, title=f"{pairs} pairs x {layers} layers x {vectors} vectors", as_json=as_json)


@app.command("vidore-scale")
def vidore_scale(
    fraction: Annotated[float, typer.Option(help="Of ViDoRe's pages and queries, for a quick look.")] = 1.0,
    folder: Annotated[Path, typer.Option(help="Where the synthetic stores go: 3 GB at full size.")] = SYNTHETIC,
    workers: Annotated[int | None, typer.Option(help="Processes. Default: one a core.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Evaluate 5 methods x 11 budgets on synthetic stores of ViDoRe v1 and v2's size: time and memory."""
    import os

    from harness.bench.vidore_scale import BUDGETS, COLUMNS, METHODS, measure
    from harness.progress import bar

    rows, size = measure(folder, fraction, workers or os.cpu_count() or 1, bar)
    title = f"{len(METHODS)} methods x {len(BUDGETS)} budgets, {size['pages']} pages, {size['queries']} queries"
    print_rows(rows, COLUMNS, title=title, as_json=as_json)
    people.print(f"peak memory of the largest process: {size['peak_gb']} GB, mapped store pages included")


@app.command()
def store(
    pages: Annotated[
        list[int] | None, typer.Option(help="Sizes of stores (repeatable). Default: 8k, 16k, 32k.")
    ] = None,
    manifest: Annotated[int, typer.Option(help="Pages of a store of which only the manifest is written.")] = 1_000_000,
    folder: Annotated[Path, typer.Option(help="Where the stores are written, and removed.")] = SYNTHETIC.parent
    / "bench",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Writing and opening stores of tiny pages: whether twice the pages take twice the time."""
    from harness.bench.store import COLUMNS, measure, open_large
    from harness.progress import bar, quiet

    rows = measure(folder, pages or (8_000, 16_000, 32_000), quiet if as_json else bar)
    rows.append(open_large(folder, manifest))
    print_rows(rows, COLUMNS, title="stores of tiny pages; the last line is a manifest alone", as_json=as_json)


@app.command()
def scale(
    pages: Annotated[str, typer.Option(help="Sizes of the corpus.")] = "10000,100000",
    queries: Annotated[int, typer.Option(min=1, help="Queries, each with one gold page.")] = 1000,
    tokens: Annotated[int, typer.Option(min=1, help="Vectors of a query.")] = 20,
    workers: Annotated[int | None, typer.Option(help="Processes. Default: one a core.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Evaluate 5 methods x 3 budgets on made-up corpora that grow: time must grow with pages, memory must not."""
    import os

    from harness.bench.scale import BUDGETS, COLUMNS, METHODS, measure
    from harness.progress import bar, quiet

    sizes = [int(size) for size in pages.split(",")]
    rows = measure(sizes, queries, tokens, workers or os.cpu_count() or 1, quiet if as_json else bar)
    title = f"{len(METHODS)} methods x {len(BUDGETS)} budgets, {queries} queries of {tokens}, pages of 30 vectors"
    print_rows(rows, COLUMNS, title=title, as_json=as_json)


@app.command()
def board(
    submissions: Annotated[int, typer.Option(min=1, help="Made-up submissions, a hundred a board.")] = 20_000,
    folder: Annotated[Path, typer.Option(help="Where they and the site go: 0.5 GB; must not exist.")] = Path(
        "bench-board"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Validate many made-up submissions and build their site: time, memory, and the largest page."""
    from harness.bench.board import COLUMNS, measure
    from harness.progress import bar, quiet

    rows = measure(folder, submissions, quiet if as_json else bar)
    print_rows(rows, COLUMNS, title=f"{submissions} made-up submissions, cache empty", as_json=as_json)


@app.command()
def million(
    pages: Annotated[int, typer.Option(help="Pages of the corpus.")] = 1_000_000,
    grid: Annotated[str, typer.Option(help="Visual tokens of a page, rows x columns.")] = "27x28",
    signal_rows: Annotated[int, typer.Option(help="Numbers that signals keep of each vector, in all.")] = 113,
    queries: Annotated[int, typer.Option(help="Queries, of 20 tokens each.")] = 1000,
    rate: Annotated[float, typer.Option(help="Pages a second that one device encodes; --dry-run measures it.")] = 10.0,
    devices: Annotated[int, typer.Option(help="Devices that encode.")] = 1,
    cores: Annotated[int, typer.Option(help="Cores that prune and score.")] = 16,
    device_price: Annotated[float, typer.Option(help="Of a device an hour, in your currency.")] = 2.0,
    core_price: Annotated[float, typer.Option(help="Of a core an hour.")] = 0.05,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """What encoding and evaluating a large corpus takes, from rates: hours, disk, cost. Scoring is measured here."""
    from harness.bench.million import COLUMNS, Corpus, Machines, plan
    from harness.progress import bar, quiet
    from pruners.core.errors import PruneBoardError

    sides = grid.split("x")
    if len(sides) != 2 or not all(side.isdigit() and int(side) for side in sides):
        raise PruneBoardError(f"--grid is rows x columns, such as 27x28, not {grid!r}")
    if min(pages, queries, devices, cores) < 1 or rate <= 0:
        raise PruneBoardError("there is at least one page, query, device and core, and a rate above 0")
    corpus = Corpus(pages, (int(sides[0]), int(sides[1])), signal_rows, queries)
    rows = plan(corpus, Machines(rate, devices, cores, device_price, core_price), quiet if as_json else bar)
    title = f"{pages:,} pages of {int(sides[0]) * int(sides[1])} vectors, {queries} queries, 5 methods x 3 budgets"
    print_rows(rows, COLUMNS, title=title, as_json=as_json)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def cluster(
    context: typer.Context,
    kills: Annotated[int, typer.Option(min=0, help="Runs in which the second node is killed, at random moments.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Encode and evaluate on Ray: one node, two, and one of two killed. Further options are those of evaluate."""
    from harness.bench.cluster import COLUMNS, measure
    from harness.progress import bar, quiet

    rows = measure(context.args, kills, quiet if as_json else bar)
    print_rows(rows, COLUMNS, title="nodes are processes of this machine with one core each", as_json=as_json)


@app.command()
def encode(
    pages: Annotated[int, typer.Option(help="Pages (A4 at 150 dpi) to encode.")] = 200,
    milliseconds: Annotated[str, typer.Option(help="What the stand-in for a GPU takes a page; several: 30,60.")] = "30",
    batch: Annotated[int, typer.Option(help="Pages at once.")] = 8,
    workers: Annotated[int | None, typer.Option(help="Processes that make pages ready. Default: one a core.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """How busy a GPU is kept while pages are decoded, resized and written: a stand-in of fixed latency, real images."""
    from harness.bench.encode import COLUMNS, measure
    from harness.progress import bar, quiet

    latencies = [float(text) for text in milliseconds.split(",")]
    rows = measure(pages, latencies, batch, workers, quiet if as_json else bar)
    print_rows(rows, COLUMNS, title=f"{pages} pages of 1240 x 1754 in batches of {batch}", as_json=as_json)
