"""The Python interface: what the command line does, as functions that return objects. docs/python.md shows each.

Nothing heavy is imported until a function is called, so that `import harness` is quick. An argument that is left out,
or None, means the same default as on the command line. `progress` and `say` are for those who want to see the work:
`from harness.progress import bar`, then `progress=bar, say=print`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.runs.results import Results

if TYPE_CHECKING:
    from harness.advice.advise import Advice
    from harness.backbones.contract import Backbone, Card
    from harness.benchmarks.benchmark import Benchmark
    from harness.calibration.window_files import SavedWindow
    from harness.evaluation.config import Config
    from harness.evaluation.plan import Plan
    from harness.experiments.run import Done
    from harness.importing.report import ImportReport
    from harness.progress import Progress
    from harness.store.reader import Store
    from harness.submissions.problems import Problem
    from harness.submissions.reproduce import Reproduction
    from harness.submissions.submit import Submitted
    from harness.submissions.validation import ValidationReport
    from harness.verification.report import Check, VerificationReport
    from harness.why.output import Drawing
    from pruners import Pruner, Window

__all__ = [
    *(
        "Results",
        "advise",
        "calibrate",
        "encode",
        "evaluate",
        "experiment",
        "import_pages",
        "import_vectors",
        "leaderboard",
    ),
    *("load_backbone", "load_benchmark", "load_run", "plan", "reproduce", "settings", "show", "submit", "validate"),
    "verify_backbone",
]

Say = Callable[[str], None]


def evaluate(
    pruners: Sequence[Any] | None = None,
    *,
    backbone: str | None = None,
    benchmark: str | None = None,
    calibration: str | None = None,
    codecs: Sequence[Any] | str | None = None,
    partners: Sequence[str] | None = None,
    budgets: str | Sequence[float] | None = None,
    trials: int | None = None,
    window: str | None = None,
    profile: str | None = None,
    seed: int | None = None,
    device: str | None = None,
    dtype: str | None = None,
    max_visual_tokens: int | None = None,
    config: Config | Path | str | None = None,
    store: Path | str | None = None,
    out: Path | str | None = None,
    workers: int | None = None,
    engine: str | None = None,
    ray_address: str | None = None,
    ray_gpus_per_worker: float | None = None,
    mteb_results: Path | str | None = None,
    sandbox: str = "auto",
    readable: Sequence[Path | str] = (),
    progress: Progress | None = None,
    say: Say | None = None,
) -> Results:
    """Measure pruning methods, or go on with a run that was interrupted. `harness evaluate --help` explains options.

    `pruners` are text forms (`"sap"`, `"kmeans(renormalize=false)"`), files (`"mine.py"`), pruners (`kmeans()`) or
    their classes: a function decorated with `@scorer` is one, also if it is written in a notebook cell. None: every
    built-in method. Methods that fail have their reason in `results.failures`; the others are finished.

    `codecs` say how vectors are stored (`"float16,int8"`, or codecs: `[float16(), int8()]`): every method is measured
    with each, and each by itself. None: float16, and what a text form names (`"sap | int8"`).

    Methods that are not built in run in processes of their own. `sandbox`: those of files without network, writing, or
    reading but of what is `readable`, where that can be had (auto); all of them (on); none (off).

    `engine="ray"` works on a Ray cluster (`ray_address`: "auto", "local" or "HOST:PORT"), with the same results.
    """
    from harness.encode import default_root
    from harness.engine.engine import open_engine
    from harness.evaluation.evaluate import RunPaths, run_name
    from harness.evaluation.evaluate import evaluate as run
    from harness.progress import quiet
    from pruners.guests.host import Isolation

    texts, own = _chosen(pruners) if pruners else (None, [])
    chosen = settings(
        config,
        pruners=texts,
        backbone=backbone,
        benchmark=benchmark,
        calibration=calibration,
        codecs=codecs,
        partners=partners,
        budgets=budgets,
        trials=trials,
        window=window,
        profile=profile,
        seed=seed,
        device=device,
        dtype=dtype,
        max_visual_tokens=max_visual_tokens,
    )
    folder = Path(out) if out else Path("runs") / run_name(chosen)
    root, apart = Path(store) if store else default_root(), Isolation(sandbox, tuple(map(Path, readable)))
    on = open_engine(engine, workers, ray_address=ray_address, ray_gpus_per_worker=ray_gpus_per_worker)
    with on as (opened, hands):
        paths = RunPaths(root, folder, hands, opened, apart)
        found = run(chosen, paths, progress or quiet, say or _nobody, own)
    if mteb_results:
        from harness.mteb_bridge import write_results

        data_sets = found.benchmark.data_sets
        cores = workers or os.cpu_count() or 1  # mteb scores here, whatever the engine
        write_results(Path(mteb_results), data_sets, found.stores, found.methods, chosen, cores, progress or quiet)
    return Results(folder, own, rows=found.rows, remarks=found.remarks)


def plan(
    config: Config | Path | str | None = None,
    *,
    store: Path | str | None = None,
    workers: int | None = None,
    engine: str | None = None,
    ray_address: str | None = None,
    ray_gpus_per_worker: float | None = None,
    rate: float | None = None,
    **given: Any,
) -> Plan:
    """What an evaluation with these settings needs and will take: `harness evaluate --dry-run`. Nothing is written."""
    from harness.encode import default_root
    from harness.engine.engine import open_engine
    from harness.evaluation.own_threshold import methods_of
    from harness.evaluation.plan import plan as make

    chosen = settings(config, **given)
    root = Path(store) if store else default_root()
    on = open_engine(engine, workers, ray_address=ray_address, ray_gpus_per_worker=ray_gpus_per_worker)
    with on as (opened, hands):
        return make(chosen, methods_of(chosen), root, hands, rate, engine=opened)


def settings(config: Config | Path | str | None = None, **given: Any) -> Config:
    """A configuration: the default one, or `config` or that of a TOML file, with the options that are given (not None).

    The options are those of `evaluate` that change a number; `pruners` are text forms here.
    """
    from harness.evaluation.config import Config, parse_budgets, read_config
    from harness.evaluation.evaluate import with_overrides

    start = config if isinstance(config, Config) else read_config(Path(config)) if config else Config()
    if isinstance(given.get("budgets"), str):
        given["budgets"] = parse_budgets(given["budgets"])
    if given.get("codecs") is not None:
        given["codecs"] = [given["codecs"]] if isinstance(given["codecs"], str) else map(str, given["codecs"])
    lists = {
        name: tuple(given[name]) for name in ("pruners", "codecs", "partners", "budgets") if given.get(name) is not None
    }
    return with_overrides(start, **{**given, **lists})


def load_run(folder: Path | str, pruners: Sequence[Pruner | type[Pruner]] = ()) -> Results:
    """The results of a run folder. `pruners` are methods of the run that are in no file, for `results.method`."""
    from pruners.core.single_page import as_pruner

    return Results(Path(folder), [as_pruner(pruner) for pruner in pruners])


def show(
    page: str | None = None,
    pruners: Sequence[Any] | None = None,
    *,
    data_set: str | None = None,
    budgets: str | Sequence[float] | None = None,
    query: str | None = None,
    layers: bool = False,
    run: Results | Path | str | None = None,
    store: Path | str | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
    **settings_: Any,
) -> Drawing:
    """Draw a page with what methods keep of it; a notebook shows it. `harness show --help` explains options.

    Of a `run` the methods are those that it measured; without one they are calibrated by the rules of an evaluation,
    whose settings (`backbone`, `benchmark`, `window`, `seed`, …) are taken too. `pruners` are as in `evaluate`.
    """
    from harness.encode import default_root
    from harness.progress import quiet
    from harness.why.output import Drawing
    from harness.why.show import USUAL, PageChoice, show_page, show_recorded
    from pruners.core.errors import PruneBoardError

    asked, root = PageChoice(page, data_set, query, layers), Path(store) if store else default_root()
    texts, own = _chosen(pruners) if pruners else ([], [])
    if run is None:
        chosen = settings(pruners=texts or USUAL, budgets=budgets, **settings_)
        return Drawing(show_page(asked, chosen, root, progress or quiet, say or _nobody, own))
    if given := [name for name, value in settings_.items() if value is not None]:
        raise PruneBoardError(f"a run has its own {given[0]}: leave it out, or leave the run out")
    results = run if isinstance(run, Results) else load_run(run, own)
    wanted = settings(budgets=budgets).budgets if budgets is not None else ()
    return Drawing(show_recorded(asked, results, root, texts, wanted))


def load_benchmark(name: str) -> Benchmark:
    """A benchmark by name (`minidocs`, `vidore-v2`, a task of MTEB) or folder: its data sets are `.data_sets`."""
    from harness.benchmarks.benchmark import load_benchmark

    return load_benchmark(name)


def load_backbone(
    name: str = "nano", *, device: str | None = None, dtype: str | None = None, max_visual_tokens: int | None = None
) -> Backbone:
    """A retriever: `name`, `name=folder`, `name=id@revision`, or `your_file.py`."""
    from harness.backbones import registry
    from harness.backbones.contract import Options

    return registry.load(name, Options(device=device, dtype=dtype, max_visual_tokens=max_visual_tokens))


def encode(
    backbone: Backbone | str = "nano",
    benchmark: Benchmark | str = "minidocs",
    *,
    store: Path | str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    max_visual_tokens: int | None = None,
    batch_size: int | None = None,
    vectors: str = "float16",
    attention_from: str | None = None,
    repair: bool = False,
    part: str | None = None,
    engine: str | None = None,
    ray_address: str | None = None,
    ray_gpus_per_worker: float | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
) -> dict[str, Store]:
    """The stores of a benchmark, one a data set, by name; encoded if they are not there yet. `stores[name].page(0)`.

    `part="3/8"` encodes the third of eight parts of each, beside other processes or machines that encode the others;
    what comes back are the stores that are finished then. With `engine="ray"` a cluster does so by itself.
    """
    from harness.encode import default_root, encode_part
    from harness.encode_on import encode_on
    from harness.engine.engine import open_engine
    from harness.evaluation.head import head_of_encoding
    from harness.progress import quiet
    from harness.store.part import WHOLE, Part
    from harness.store.reader import Store
    from harness.store.sidecar import read_manifest
    from pruners.core.errors import PruneBoardError

    loaded = _loaded(backbone, device, dtype, max_visual_tokens)
    pages = load_benchmark(benchmark) if isinstance(benchmark, str) else benchmark
    if attention_from is not None:
        from harness.backbones.attention_source import with_attention_from

        loaded = probed = with_attention_from(loaded, attention_from)
        (say or _nobody)(f"Attention is read from {probed.checkpoint.name}.")
    root = Path(store) if store else default_root()
    more: dict[str, Any] = {"vector_dtype": vectors, "batch_size": batch_size, "repair": repair}
    more |= {"progress": progress or quiet, "say": say or _nobody}
    chosen = Part.parse(part) if part else WHOLE
    stores = {}
    if engine not in (None, "processes") and part is not None:
        raise PruneBoardError(f"--engine {engine} makes parts by itself: leave --part away")
    with open_engine(engine, ray_address=ray_address, ray_gpus_per_worker=ray_gpus_per_worker) as (opened, _):
        if line := head_of_encoding(pages.data_sets, loaded, root, opened, vector_dtype=vectors, part=chosen):
            (say or _nobody)(line)
        if opened.elsewhere:
            return {each.name: encode_on(opened, loaded, each, root, **more) for each in pages.data_sets}
    for data_set in pages.data_sets:
        folder = encode_part(loaded, data_set, root, chosen, **more)
        found = read_manifest(folder)
        if found.complete:
            stores[data_set.name] = Store(folder)
        else:
            done = sum(len(found.pages_of(index)) for index in found.shards)
            (say or _nobody)(f"{folder}: {done} of {len(found.page_ids)} pages are there; other parts are missing")
    return stores


@dataclass(frozen=True)
class Calibrated:
    """A backbone's window of layers, and the file in which evaluations find it."""

    window: Window
    file: Path
    found: SavedWindow
    """The curve R(l), its median, the pairs: everything that was measured."""
    card: Card


def calibrate(
    backbone: Backbone | str = "nano",
    benchmark: str = "minidocs-calibration",
    *,
    pairs: int = 500,
    gamma: float = 0.10,
    rho: float = 0.2,
    seed: int = 42,
    device: str | None = None,
    dtype: str | None = None,
    max_visual_tokens: int | None = None,
    store: Path | str | None = None,
    engine: str | None = None,
    ray_address: str | None = None,
    ray_gpus_per_worker: float | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Calibrated:
    """Find the layers that SAP should read on a backbone, and save them for evaluations."""
    from harness.calibration.calibrate import calibrate as run
    from harness.calibration.data import calibration_data_set
    from harness.encode import default_root
    from harness.engine.engine import open_engine
    from harness.evaluation.head import head_of_encoding
    from harness.progress import quiet
    from pruners import Window

    loaded = _loaded(backbone, device, dtype, max_visual_tokens)
    root = Path(store) if store else default_root()
    more: dict[str, Any] = {"pairs": pairs, "gamma": gamma, "rho": rho, "seed": seed}
    with open_engine(engine, ray_address=ray_address, ray_gpus_per_worker=ray_gpus_per_worker) as (opened, _):
        data_set = calibration_data_set(benchmark)
        if line := head_of_encoding([data_set], loaded, root, opened):
            (say or _nobody)(line)
        found, path = run(loaded, data_set, root, progress=progress or quiet, engine=opened, **more)
    return Calibrated(Window.parse(found.window), path, found, loaded.card)


def submit(folder: Path | str, submitter: str, **options: Any) -> list[Submitted]:
    """Write a run's results as submissions, one a method; `harness/submissions/submit.py` has the options."""
    from harness.submissions.submit import submit as run

    return run(Path(folder), submitter, **options)


@dataclass(frozen=True)
class Site:
    """A leaderboard that was built."""

    index: Path
    submissions: int
    pages: int
    bytes: int
    left_out: list[Problem]
    """Why some submissions are not on it."""


def leaderboard(
    out: Path | str = "site",
    *,
    submissions: Path | str | None = None,
    runs: Sequence[Path | str | Results] = (),
    base_url: str | None = None,
    publish: bool = False,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Site:
    """Build the leaderboard, a static site, of a folder of submissions (the project's own) and of runs beside them.

    With `publish` the folder has what GitHub Pages and a static Hugging Face Space ask for.
    """
    from harness.progress import quiet
    from harness.submissions.folder import in_checkout, own_folder
    from leaderboard.gather import gather
    from leaderboard.site import build

    folders = [run.folder if isinstance(run, Results) else Path(run) for run in runs]
    if submissions is None and folders and not in_checkout():
        (say or _nobody)("your runs alone: the project's submissions lie in its repository")
        shown = None
    else:
        hint = "show runs of your own with --runs, or name a folder with --submissions"
        shown = Path(submissions) if submissions else own_folder(hint)
    found = gather(shown, folders)
    built = build(found, Path(out), base_url, progress or quiet, publish=publish, drawn=True)
    return Site(Path(out) / "index.html", built.submissions, built.pages, built.size, built.left_out)


def advise(
    run: Results | Path | str | None = None,
    *,
    board: str | None = None,
    keep: float = 98.0,
    pages: float = 1e6,
    max_gb: float | None = None,
    max_ms: float | None = None,
    scan: float | None = None,
    vectors_only: bool = False,
    submissions: Path | str | None = None,
    progress: Progress | None = None,
) -> Advice:
    """The cheapest method, budget and codec whose lower bound keeps `keep` % of NDCG@5; print it, or read its fields.

    Of a run, or of a board: `board="vidore-v2/colqwen2"`, from the project's submissions or another folder of them.
    """
    from harness.advice import advise as advice
    from harness.advice.cost import measure_rate
    from harness.advice.rule import Asked
    from harness.progress import quiet
    from pruners.core.errors import PruneBoardError

    if (run is None) == (board is None):
        raise PruneBoardError("name either a run (--run FOLDER) or a board (--board vidore-v2/colqwen2)")
    if not 0 < keep <= 100:
        raise PruneBoardError(
            f"--keep is a share of the full model's NDCG@5 in %, above 0 and at most 100, not {keep:g}"
        )
    for name, value in (("pages", pages), ("max-gb", max_gb), ("max-ms", max_ms), ("scan", scan)):
        if value is not None and not 0 < value < float("inf"):
            raise PruneBoardError(f"--{name} is a number above 0, not {value:g}")
    if board is not None:
        from harness.submissions.folder import own_folder
        from leaderboard.advice import find_view, view_basis, view_candidates

        folder = Path(submissions) if submissions else own_folder("name a folder with --submissions, or a --run")
        view = find_view(board, folder, progress or quiet)
        rows, basis = list(view_candidates(view)), view_basis(view)
    else:
        from harness.advice.from_run import run_basis, run_candidates

        results = run if isinstance(run, Results) else load_run(str(run))
        with (progress or quiet)("intervals of the run", total=1, done=0) as advance:
            rows, basis = list(run_candidates(results)), run_basis(results)
            advance(1)
    asked = Asked(keep, pages, max_gb, max_ms, vectors_only)
    return advice.advise(rows, basis, asked, measure_rate, scan)


def experiment(
    names: Sequence[str] | None = None,
    *,
    out: Path | str = "experiments",
    store: Path | str | None = None,
    workers: int | None = None,
    engine: str | None = None,
    ray_address: str | None = None,
    ray_gpus_per_worker: float | None = None,
    again: bool = False,
    progress: Progress | None = None,
    say: Say | None = None,
    **settings_: Any,
) -> list[Done]:
    """Run experiments of the SAP paper (None: all) into a folder; what was done comes back, with failures by name.

    Settings are those of `harness experiment --help`: `backbone`, `benchmark`, `calibration`, `sizes=[100, 500]` ….
    """
    from harness.cache import default_root
    from harness.engine.engine import open_engine
    from harness.experiments.registry import EXPERIMENTS, find
    from harness.experiments.run import run_experiments
    from harness.experiments.workbench import ExperimentSettings, Workbench
    from harness.progress import quiet

    chosen = list(EXPERIMENTS.values()) if names is None else [find(name) for name in names]
    asked = ExperimentSettings(**{name: value for name, value in settings_.items() if value is not None})
    root = Path(store) if store else default_root()
    on = open_engine(engine, workers, ray_address=ray_address, ray_gpus_per_worker=ray_gpus_per_worker)
    with on as (opened, hands):
        workbench = Workbench(asked, root, Path(out), hands, progress or quiet, say or _nobody, opened)
        return run_experiments(workbench, chosen, again=again)


def import_pages(
    sources: Sequence[Path | str],
    out: Path | str,
    *,
    queries: str = "labels",
    dpi: int = 144,
    ocr: bool = False,
    keep_contents_pages: bool = False,
    min_words: int = 2,
    pairs: int | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """PDFs or images as a benchmark in ViDoRe's layout, labelled by you or by their outlines (`queries="outline"`)."""
    from harness.importing.from_labels import has_labels, import_labelled
    from harness.importing.from_outline import OutlineSettings, import_outlines
    from harness.importing.ocr import reader
    from harness.progress import quiet
    from pruners.core.errors import PruneBoardError

    paths, bar = [Path(source) for source in sources], progress or quiet
    if queries not in ("labels", "outline"):
        raise PruneBoardError(f"--queries {queries!r} is unknown; write labels or outline")
    if queries == "outline":
        asked = OutlineSettings(dpi=dpi, min_words=min_words, keep_contents_pages=keep_contents_pages, pairs=pairs)
        return import_outlines(paths, Path(out), asked, reader() if ocr else None, bar)
    if len(paths) != 1 or not has_labels(paths[0]):
        raise PruneBoardError(
            f"{' '.join(map(str, paths))} is no folder with queries.jsonl and qrels.tsv; write these, "
            "or let the PDFs ask: --queries outline"
        )
    return import_labelled(paths[0], Path(out), dpi, reader() if ocr else None, bar)


def import_vectors(
    pages: Path | str, queries: Path | str, out: Path | str, *, name: str, vectors: str = "float16", note: str = ""
) -> Store:
    """A store from vectors one already has; `backbone="store=FOLDER"` evaluates it."""
    from harness.store.import_vectors import import_vectors as run

    return run(Path(pages), Path(queries), Path(out), name=name, vector_dtype=vectors, note=note)


def validate(
    path: Path | str | None = None, *, against: Path | None = None, by: str | None = None, maintainer: bool = False
) -> ValidationReport:
    """Check a submission, a folder of them, or all of the project's own, as the leaderboard does."""
    from harness.submissions import validation
    from harness.submissions.folder import own_folder

    target = Path(path) if path else own_folder("name a submission or a folder of submissions")
    return validation.validate_below(target, against, validation.ChangeBy(by, maintainer))


def reproduce(
    ids: Sequence[str] | None = None,
    *,
    submissions: Path | str | None = None,
    pruner: Path | str | None = None,
    backbone: str | None = None,
    data: Path | str | None = None,
    out: Path | str | None = None,
    store: Path | str | None = None,
    workers: int | None = None,
    sandbox: str = "on",
    readable: Sequence[Path | str] = (),
    sample: int | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Iterator[Reproduction]:
    """Measure stored submissions again from scratch (None: all that were measured), and compare ranking by ranking.

    `harness reproduce --help` explains options. What came out is given one by one; `record(by)` of one is to be signed.
    """
    import tempfile

    from harness.progress import quiet
    from harness.submissions.folder import find_submissions, own_folder
    from harness.submissions.reproduce import reproduce as run
    from harness.submissions.rerun import Given, measured
    from pruners.core.errors import PruneBoardError
    from pruners.guests.host import Isolation

    folder = Path(submissions) if submissions else own_folder("name a folder with submissions=…")
    if not folder.is_dir():
        raise PruneBoardError(f"{folder} is no folder of submissions")
    known = {path.stem: path for path in find_submissions(folder)}
    if ids is not None and (unknown := [name for name in ids if name not in known]):
        raise PruneBoardError(f"{folder} has no submission {unknown[0]}")
    chosen = measured(known.values()) if ids is None else [known[name] for name in ids]
    given = Given(backbone, Path(data) if data else None, Path(pruner) if pruner else None)
    apart = Isolation(sandbox, tuple(map(Path, readable)))
    with tempfile.TemporaryDirectory(prefix="pruneboard-") as scratch:
        yield from run(
            chosen,
            given,
            Path(out or scratch),
            store=Path(store) if store else None,
            workers=workers or os.cpu_count() or 1,
            apart=apart,
            sample=sample,
            progress=progress or quiet,
            say=say or _nobody,
        )


def verify_backbone(
    name: str,
    *,
    task: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    max_visual_tokens: int | None = None,
    store: Path | str | None = None,
    progress: Progress | None = None,
    say: Callable[[Check], None] | None = None,
) -> VerificationReport:
    """Check that a backbone is what it says, before a long run. `say` is told each check as it is done."""
    from harness.backbones.contract import Options
    from harness.cache import default_root
    from harness.progress import quiet
    from harness.verification.verify import verify

    options = Options(device=device, dtype=dtype, max_visual_tokens=max_visual_tokens)
    root, told = Path(store) if store else default_root(), say or (lambda check: None)
    return verify(name, options, task=task, stores=root, progress=progress or quiet, say=told)


def _chosen(pruners: Sequence[Any]) -> tuple[list[str], list[Pruner]]:
    """Text forms of all pruners, for the record, and the pruners that were given as objects."""
    from pruners.core.single_page import as_pruner

    if isinstance(pruners, (str, Path)) or not isinstance(pruners, Sequence):
        pruners = [pruners]
    texts, own = [], []
    for pruner in pruners:
        if isinstance(pruner, (str, Path)):
            texts.append(str(pruner))
        else:
            own.append(as_pruner(pruner))
            texts.append(str(own[-1]))
    return texts, own


def _loaded(backbone: Backbone | str, device: str | None, dtype: str | None, most: int | None) -> Backbone:
    if isinstance(backbone, str):
        return load_backbone(backbone, device=device, dtype=dtype, max_visual_tokens=most)
    return backbone


def _nobody(text: str) -> None:
    """Nobody is told."""
