"""Methods measured, calibrated and looked at."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.api.arguments import Say, chosen_pruners, nobody
from harness.api.pages import loaded_backbone
from harness.runs.results import Results

if TYPE_CHECKING:
    from harness.backbones.contract import Backbone, Card
    from harness.calibration.window_files import SavedWindow
    from harness.evaluation.config import Config
    from harness.evaluation.plan import Plan
    from harness.experiments.run import Done
    from harness.progress import Progress
    from harness.why.output import Drawing
    from pruners import Pruner, Window


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

    texts, own = chosen_pruners(pruners) if pruners else (None, [])
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
        found = run(chosen, paths, progress or quiet, say or nobody, own)
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
    texts, own = chosen_pruners(pruners) if pruners else ([], [])
    if run is None:
        chosen = settings(pruners=texts or USUAL, budgets=budgets, **settings_)
        return Drawing(show_page(asked, chosen, root, progress or quiet, say or nobody, own))
    if given := [name for name, value in settings_.items() if value is not None]:
        raise PruneBoardError(f"a run has its own {given[0]}: leave it out, or leave the run out")
    results = run if isinstance(run, Results) else load_run(run, own)
    wanted = settings(budgets=budgets).budgets if budgets is not None else ()
    return Drawing(show_recorded(asked, results, root, texts, wanted))


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
    benchmark: str | None = None,
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
    """Find the layers that SAP should read on a backbone, and save them for evaluations.

    `benchmark` has the calibration pairs; only for `nano`, which was made for drawn pages, there is one by itself.
    """
    from harness.calibration.calibrate import calibrate as run
    from harness.calibration.data import calibration_data_set, own_calibration_set
    from harness.encode import default_root
    from harness.engine.engine import open_engine
    from harness.evaluation.head import head_of_encoding
    from harness.progress import quiet
    from pruners import Window

    loaded = loaded_backbone(backbone, device, dtype, max_visual_tokens)
    root = Path(store) if store else default_root()
    more: dict[str, Any] = {"pairs": pairs, "gamma": gamma, "rho": rho, "seed": seed}
    with open_engine(engine, ray_address=ray_address, ray_gpus_per_worker=ray_gpus_per_worker) as (opened, _):
        data_set = calibration_data_set(benchmark or own_calibration_set(loaded.card.name))
        if line := head_of_encoding([data_set], loaded, root, opened):
            (say or nobody)(line)
        found, path = run(loaded, data_set, root, progress=progress or quiet, engine=opened, **more)
    return Calibrated(Window.parse(found.window), path, found, loaded.card)


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
        workbench = Workbench(asked, root, Path(out), hands, progress or quiet, say or nobody, opened)
        return run_experiments(workbench, chosen, again=again)
