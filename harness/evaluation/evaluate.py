"""The main job: encode, calibrate, prune and score, measure; each stage reads what the one before it wrote."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.backbones import registry
from harness.backbones.contract import Card
from harness.benchmarks.benchmark import Benchmark, load_benchmark, with_held_out
from harness.engine.engine import PROCESSES, WorkEngine
from harness.evaluation.calibration import Setting, calibrated, require_calibration
from harness.evaluation.config import Config
from harness.evaluation.data_sets import evaluate_data_sets
from harness.evaluation.head import head_of_run
from harness.evaluation.made_by import describe_methods, forget_outdated, read_from
from harness.evaluation.methods import Method, refuse_unfit, unfit
from harness.evaluation.own_threshold import methods_of
from harness.evaluation.presence import absent, options_of, require_reachable
from harness.evaluation.pruned_pages import NATIVE, Job
from harness.evaluation.record import with_own, write_record
from harness.evaluation.run_folder import RunFolder
from harness.evaluation.scores import load_queries, score_pages
from harness.evaluation.summary import summarise
from harness.progress import Progress
from harness.store.reader import Store
from harness.workers import spread
from pruners import Pruner, catalogue
from pruners.core.errors import PruneBoardError
from pruners.core.plugins import CatalogEntry, file_and_rest
from pruners.guests.host import USUAL, Isolation, no_sandbox


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation found, and what it was made with."""

    run: RunFolder
    benchmark: Benchmark
    stores: dict[str, Store]
    methods: list[Method]
    """Those that have results, ready to prune."""
    rows: list[dict]
    failures: dict[str, str]
    remarks: list[str]
    """What a reader of the figures must know: held-out pages, queries left out, data that is not the pinned one."""


@dataclass(frozen=True)
class RunPaths:
    """Where things are and how many hands there are: nothing here changes a number."""

    stores: Path
    run: Path
    workers: int
    engine: WorkEngine = PROCESSES
    apart: Isolation = USUAL


def evaluate(
    config: Config,
    paths: RunPaths,
    progress: Progress,
    say: Callable[[str], None] = lambda text: None,
    own: Sequence[Pruner] = (),
) -> Evaluation:
    """Run an evaluation, or go on with it. `say` is told what will be done and how long it may take.

    `own` are pruners given as objects; the configuration names them by their text among its pruners.
    """
    texts = _texts(config, own)
    methods = methods_of(config, texts, own, paths.apart)
    if told := no_sandbox([method.pruner for method in methods]):
        say(told)
    if missing := absent(config, methods):
        require_reachable(missing)
        say(f"to be fetched: {'; '.join(missing)}")
    benchmark = load_benchmark(config.benchmark)
    known = with_own(catalogue(dict.fromkeys(file for text in texts if (file := file_and_rest(text)[0]))), own)
    backbone = registry.load(config.backbone, options_of(config))
    setting = Setting(config, benchmark, backbone, paths.stores, paths.workers, progress, say, paths.engine)
    fit = _require_fit(config, methods, backbone.card, say)
    require_calibration(setting, fit)
    if line := head_of_run(config, fit, benchmark, backbone, paths.stores, paths.workers, paths.engine):
        say(line)
    with RunFolder(paths.run).one_writer():
        return _measure(setting, methods, known, paths)


def _measure(setting: Setting, methods: list[Method], known: Mapping[str, CatalogEntry], paths: RunPaths) -> Evaluation:
    """What is missing of a run is encoded, calibrated, measured and written."""
    config, benchmark, backbone = setting.config, setting.benchmark, setting.backbone
    progress, say = setting.progress, setting.say
    run = RunFolder.begin(paths.run, config)
    for remark in benchmark.remarks():
        run.log(remark)
    stores = {data_set.name: setting.store(data_set) for data_set in benchmark.data_sets}
    if config.profile == NATIVE and not any(len(store.prompt(0)) for store in stores.values()):
        raise PruneBoardError(
            f"{config.backbone} gives no prompt vectors, so there is nothing more to index: use visual"
        )
    _same_stores(run, stores)
    methods = _fit(config, refuse_unfit(methods, next(iter(stores.values()))), run, say)
    methods = calibrated(setting, stores, methods, run)
    packages = {name: entry.source for name, entry in known.items()}
    methods, made_by = describe_methods(methods, packages)
    failures = {m.text: m.failure for m in methods if m.failure is not None}
    able = [m for m in methods if m.failure is None]
    for method in [m for m in methods if m.failure is not None]:  # what it had measured before is not this method's
        for data_set in stores:
            run.forget(data_set, method.slug)
    read = {data_set.name: read_from(data_set, stores[data_set.name]) for data_set in benchmark.data_sets}
    for changed in forget_outdated(run, read, able, made_by):
        say(changed)
        run.log(changed)
    say(_estimate(config, benchmark, stores, able, run, paths, progress))
    write_record(run, config, benchmark, backbone, stores, able, known, made_by)
    failures |= evaluate_data_sets(
        config, benchmark.data_sets, stores, able, run, paths.workers, progress, made_by, paths.engine
    )
    run.write_json("failures.json", failures)
    rows = summarise(run, [data_set.name for data_set in benchmark.data_sets], able, config.budgets)
    scored = [m for m in methods if m.text not in failures]
    return Evaluation(run, benchmark, stores, scored, rows, failures, benchmark.remarks())


def _require_fit(config: Config, methods: list[Method], card: Card, say: Callable[[str], None]) -> list[Method]:
    """Before any work: the methods that a backbone can serve. An error if there is none."""
    reasons = unfit(methods, card)
    if reasons and len(reasons) == len(methods):
        raise PruneBoardError("; ".join(reasons.values()))
    if config.pruners:
        for why in reasons.values():
            say(f"will have no results: {why}")
    return [method for method in methods if method.text not in reasons]


def _texts(config: Config, own: Sequence[Pruner]) -> list[str]:
    """The pruners that the configuration names and nobody gave as an object."""
    given = [str(pruner) for pruner in own]
    if twice := [text for text in given if config.pruners.count(text) > 1]:
        raise PruneBoardError(f"the pruner {twice[0]!r} is asked for twice")
    if unnamed := [text for text in given if text not in config.pruners]:
        raise PruneBoardError(f"{unnamed[0]} is given as an object, but the configuration does not name it")
    return [text for text in config.pruners if text not in given]


def _same_stores(run: RunFolder, stores: dict[str, Store]) -> None:
    """A run goes on only with what it began with: new weights or new pages under the old names are another run."""
    before = run.read_json("stores.json") or {}
    changed = [name for name, store in stores.items() if before.get(name, {}).get("store", store.key) != store.key]
    if changed:
        raise PruneBoardError(
            f"{run.folder} was begun with another checkpoint or other pages ({', '.join(changed)} changed since); "
            "choose another --out, or delete the folder"
        )


def _fit(config: Config, methods: list[Method], run: RunFolder, say: Callable[[str], None]) -> list[Method]:
    """Methods that were named stay, with the reason why they fail. Of `every built-in` those that cannot run on this
    retriever were not asked for: they are left out, and that is said.
    """
    if config.pruners:
        return methods
    for method in methods:
        if method.failure is not None:
            run.log(f"left out: {method.failure}")
    if unfit := [method.text for method in methods if method.failure is not None]:
        say(f"left out, because {config.backbone} lacks what they need: {', '.join(unfit)}")
    return [method for method in methods if method.failure is None]


def _estimate(
    config: Config,
    benchmark: Benchmark,
    stores: dict[str, Store],
    methods: Sequence[Method],
    run: RunFolder,
    paths: RunPaths,
    progress: Progress,
) -> str:
    """What is left to do, and how long it may take: three pages are pruned and scored to see.

    From inside the data set: the first page of a book is its cover, with hardly a vector.
    """
    left = [
        data_set.name for data_set in benchmark.data_sets if not all(run.has(data_set.name, m.slug) for m in methods)
    ]
    if not left or not methods:
        return "nothing is left to evaluate"
    store = stores[left[0]]
    queries = load_queries(store, range(len(store.query_ids)), config.device)
    job = Job(store, tuple(methods), config.budgets, config.seed, queries, {}, config.profile)
    tried = [len(store) * part // 6 for part in (1, 3, 5)]
    trial = [tried[0], *tried]
    with (
        progress("estimate; a first run compiles", total=len(trial), done=0) as advance,
        spread(lambda page: score_pages(job, [page]), trial, workers=1) as results,
    ):
        for i, _ in enumerate(results):
            advance(1)
            if i == 0:  # what was not compiled yet is now
                start = time.perf_counter()
        taken = time.perf_counter() - start
    pages = sum(len(stores[name]) for name in left)
    seconds = taken / len(tried) * pages / paths.workers
    return f"{len(methods)} methods on {pages} pages of {len(left)} data sets: about {seconds:.0f} s"


def run_name(config: Config) -> str:
    """The folder name of a run that was given none."""
    words = [config.backbone.partition("=")[0], Path(config.benchmark).name, config.key]
    return "--".join("".join(c if c.isalnum() or c in "._-" else "_" for c in word) for word in words)


def with_overrides(config: Config, **given: Any) -> Config:
    """`config` with the settings that were given."""
    config = replace(config, **{name: value for name, value in given.items() if value is not None})
    benchmark, calibration = with_held_out(config.benchmark, config.calibration)
    return replace(config, benchmark=benchmark, calibration=calibration)
