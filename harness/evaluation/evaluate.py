"""The main job: encode, calibrate, prune and score, measure; each stage reads what the one before it wrote."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.backbones import registry
from harness.backbones.contract import Backbone, Options
from harness.benchmarks.folder import Benchmark
from harness.benchmarks.suite import Suite, load_suite
from harness.calibration.window import WindowChoice, choose_window, layer_curve
from harness.encode import encode
from harness.evaluation.config import Config
from harness.evaluation.methods import Method, choose_methods, has_open_window, needs_calibration, prepare, refuse_unfit
from harness.evaluation.record import thresholds, write_record
from harness.evaluation.results import FULL, TaskEvaluator
from harness.evaluation.run_folder import RunFolder
from harness.evaluation.scores import INDEX_BITS, Job, gold_queries, load_queries, score_one, score_task
from harness.evaluation.summary import summarise
from harness.metrics.retention import GoldPairs
from harness.progress import Progress
from harness.store.reader import Store
from pruners import Page, Window
from pruners.core.errors import PruneBoardError


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation found."""

    run: RunFolder
    rows: list[dict]
    failures: dict[str, str]


@dataclass(frozen=True)
class Places:
    """Where things are and how many hands there are: nothing here changes a number."""

    stores: Path
    run: Path
    workers: int


def evaluate(
    config: Config, places: Places, progress: Progress, say: Callable[[str], None] = lambda text: None
) -> Evaluation:
    """Run an evaluation, or go on with it. `say` is told what will be done and how long it may take."""
    suite = load_suite(config.benchmark)
    methods = choose_methods(config.pruners, config.trials)
    _require_calibration(config, suite, methods)
    options = Options(device=config.device, dtype=config.dtype, max_visual_tokens=config.max_visual_tokens)
    backbone = registry.load(config.backbone, options)
    run = RunFolder.begin(places.run, config)
    stores = {task.name: _encoded(backbone, task, places, progress) for task in suite.tasks}
    methods = refuse_unfit(methods, next(iter(stores.values())))
    methods = _calibrated(config, suite, backbone, stores, methods, run, places, progress)
    write_record(run, config, suite, backbone, stores, methods)
    failures = {m.text: m.failure for m in methods if m.failure is not None}
    say(_estimate(config, suite, stores, [m for m in methods if m.failure is None], run, places))
    for task in suite.tasks:
        able = [m for m in methods if m.text not in failures]
        failures |= _evaluate_task(config, task, stores[task.name], able, run, places, progress)
    run.write_json("failures.json", failures)
    rows = summarise(run, [task.name for task in suite.tasks], methods, config.budgets)
    return Evaluation(run, rows, failures)


def _encoded(backbone: Backbone, task: Benchmark, places: Places, progress: Progress) -> Store:
    return encode(backbone, task, places.stores, progress=progress)


def _estimate(
    config: Config,
    suite: Suite,
    stores: dict[str, Store],
    methods: Sequence[Method],
    run: RunFolder,
    places: Places,
) -> str:
    """What is left to do, and how long it may take: one page is pruned and scored to see."""
    left = [task.name for task in suite.tasks if not all(run.has(task.name, m.slug) for m in methods)]
    if not left or not methods:
        return "nothing is left to evaluate"
    store = stores[left[0]]
    job = Job(store, tuple(methods), config.budgets, config.seed, load_queries(store, range(len(store.query_ids))), {})
    score_one(job, 0)  # compiles what is not compiled yet
    start = time.perf_counter()
    score_one(job, 0)
    pages = sum(len(stores[name]) for name in left)
    seconds = (time.perf_counter() - start) * pages / places.workers
    return f"{len(methods)} methods on {pages} pages of {len(left)} data sets: about {seconds:.0f} s"


def _evaluate_task(
    config: Config,
    task: Benchmark,
    store: Store,
    methods: Sequence[Method],
    run: RunFolder,
    places: Places,
    progress: Progress,
) -> dict[str, str]:
    """Evaluate what is missing of one data set; the reasons of methods that failed."""
    missing = [method for method in methods if not run.has(task.name, method.slug)]
    if not missing and run.has(task.name, FULL):
        return {}
    evaluator = TaskEvaluator.of(task, store.query_ids)
    if not evaluator.evaluate.query_ids:
        raise PruneBoardError(f"no query of {task.name} has a relevant page, so nothing can be measured on it")
    left_out = len(store.query_ids) - len(evaluator.evaluate.query_ids)
    if left_out:
        run.log(f"{task.name}: {left_out} queries have no relevant page and are left out")
    job = Job(
        store,
        tuple(missing),
        config.budgets,
        config.seed,
        load_queries(store, range(len(store.query_ids))),
        gold_queries(evaluator.gold.queries, evaluator.gold.pages),
    )
    start = time.perf_counter()
    with progress(f"{task.name}: prune, score", total=len(store), done=0) as advance:
        scores = score_task(job, places.workers, advance)
    run.write_result(FULL, evaluator.full(scores, store.dim, INDEX_BITS))
    with progress(f"{task.name}: measure", total=len(missing), done=0) as advance:
        for method in missing:
            if method.text not in scores.failures:
                run.write_result(method.slug, evaluator.method(method, config.budgets, scores))
            advance(1)
    run.add_timings(task.name, scores.milliseconds)
    run.log(f"{task.name}: {len(missing)} methods on {len(store)} pages in {time.perf_counter() - start:.1f} s")
    return scores.failures


def _calibrated(
    config: Config,
    suite: Suite,
    backbone: Backbone,
    stores: dict[str, Store],
    methods: Sequence[Method],
    run: RunFolder,
    places: Places,
    progress: Progress,
) -> list[Method]:
    """Methods with windows and thresholds, from pages that are not evaluated."""
    fit = [method for method in methods if method.failure is None]
    wants_window = [m for m in fit if _wants_window(config, m)]
    wants_pages = [m for m in fit if needs_calibration(m.pruner)]
    window = Window.parse(config.window) if config.window else None
    if not wants_window and not wants_pages:
        return prepare(methods, window, [], config.budgets)
    name = config.calibration or suite.calibration
    assert name is not None, "`_require_calibration` saw to it"
    task = _only_data_set(name)
    store = _encoded(backbone, task, places, progress)
    _check_disjoint(task, store, stores)
    choice = _sr_guided(config, task, store, progress) if wants_window else None
    window = choice.window if choice else window
    chosen = sorted(random.Random(config.seed).sample(range(len(store)), min(config.calibration_pages, len(store))))
    pages: list[Page] = [store.page(index) for index in chosen] if wants_pages else []
    with progress("calibrate", total=1, done=0) as advance:
        ready = prepare(methods, window, pages, config.budgets)
        advance(1)
    run.write_json("calibration.json", _calibration_record(task, store, choice, len(pages), ready))
    return ready


def _only_data_set(name: str) -> Benchmark:
    tasks = load_suite(name).tasks
    if len(tasks) != 1:
        raise PruneBoardError(
            f"--calibration {name} has {len(tasks)} data sets ({', '.join(task.name for task in tasks)}); name one"
        )
    return tasks[0]


def _wants_window(config: Config, method: Method) -> bool:
    return config.window is None and has_open_window(method.pruner)


def _require_calibration(config: Config, suite: Suite, methods: Sequence[Method]) -> None:
    """Before any work: methods that learn something must have pages to learn it from."""
    learners = [m.text for m in methods if _wants_window(config, m) or needs_calibration(m.pruner)]
    if learners and (config.calibration or suite.calibration) is None:
        raise PruneBoardError(
            f"{', '.join(learners)} must be calibrated on pages that are not evaluated, and {suite.name} brings none: "
            "name a benchmark with --calibration, give windows with layers=…, or leave these methods out"
        )


def _sr_guided(config: Config, task: Benchmark, store: Store, progress: Progress) -> WindowChoice:
    gold = GoldPairs.of(task.qrels, store.query_ids, store.page_ids)
    pairs = list(zip(gold.pages.tolist(), gold.queries.tolist(), strict=True))
    chosen = sorted(random.Random(config.seed).sample(pairs, min(config.window_pairs, len(pairs))))
    with progress("choose the window", total=len(chosen), done=0) as advance:
        curve, left_out = layer_curve(store, chosen, advance=advance)
    return choose_window(curve, pairs=len(chosen), left_out=left_out)


def _check_disjoint(task: Benchmark, calibration: Store, stores: dict[str, Store]) -> None:
    """No evaluated page may have been learned from, whatever its id: images are compared by their pixels."""
    known = set(calibration.image_hashes)
    for name, store in stores.items():
        shared = [page for page, image in zip(store.page_ids, store.image_hashes, strict=True) if image in known]
        if shared:
            raise PruneBoardError(
                f"calibration set {task.name} and {name} share {len(shared)} pages, the first is {shared[0]!r}; "
                "thresholds learned from evaluated pages would flatter a method"
            )


def _calibration_record(
    task: Benchmark, store: Store, choice: WindowChoice | None, pages: int, methods: Sequence[Method]
) -> dict[str, Any]:
    window = None
    if choice is not None:
        window = {**asdict(choice), "window": str(choice.window), "empty_suffix": choice.empty_suffix}
    return {
        "benchmark": task.name,
        "store": store.key,
        "content": dict(task.content),
        "window": window,
        "pages": pages,
        "thresholds": {m.text: found for m in methods if (found := thresholds(m.pruner))},
    }


def run_name(config: Config) -> str:
    """The folder name of a run that was given none."""
    words = [config.backbone.partition("=")[0], Path(config.benchmark).name, config.key]
    return "--".join("".join(c if c.isalnum() or c in "._-" else "_" for c in word) for word in words)


def with_overrides(config: Config, **given: Any) -> Config:
    """`config` with the settings that were given."""
    return replace(config, **{name: value for name, value in given.items() if value is not None})
