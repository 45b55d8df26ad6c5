"""Methods made ready for an evaluation: windows bound and thresholds learned, from pages that are not evaluated."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.backbones.contract import TEXT_TOKENS, Backbone
from harness.benchmarks.benchmark import Benchmark
from harness.benchmarks.data_set import DataSet
from harness.calibration.calibrate import BoundWindow, as_reported, given_or_saved, measured
from harness.calibration.data import calibration_data_set, check_disjoint, draw
from harness.encode_on import encode_on
from harness.engine.engine import PROCESSES, WorkEngine, workers_here
from harness.evaluation.config import Config
from harness.evaluation.methods import Method, prepare
from harness.evaluation.run_folder import RunFolder
from harness.progress import Progress
from harness.store.reader import Store
from pruners.core.contract import Pruner
from pruners.core.errors import PruneBoardError

RECORD = "calibration.json"


@dataclass(frozen=True)
class Setting:
    """What calibration needs to know of an evaluation."""

    config: Config
    benchmark: Benchmark
    backbone: Backbone
    stores: Path
    workers: int
    progress: Progress
    say: Callable[[str], None]
    engine: WorkEngine = PROCESSES

    def store(self, data_set: DataSet) -> Store:
        """Encoded, if it is not there yet."""
        hands, bar, say = self.workers, self.progress, self.say
        return encode_on(self.engine, self.backbone, data_set, self.stores, workers=hands, progress=bar, say=say)

    @property
    def calibration(self) -> str | None:
        return self.config.calibration or self.benchmark.calibration


def require_calibration(setting: Setting, methods: Sequence[Method]) -> None:
    """Before any work: methods that learn something must have something to learn it from."""
    config, name = setting.config, setting.benchmark.name
    if told := lacks_calibration(config, setting.backbone, setting.stores, methods, setting.calibration, name):
        raise PruneBoardError(told)


def lacks_calibration(
    config: Config,
    backbone: Backbone | None,
    stores: Path,
    methods: Sequence[Method],
    calibration: str | None,
    benchmark: str,
) -> str:
    """Which methods have nothing to learn from, in words; nothing if all have. Whether there is a window for a backbone
    that is not here nobody knows, so none is missed.
    """
    if calibration is not None:
        return ""
    windows = backbone is None or given_or_saved(config.window, backbone, stores, {}) or as_reported(backbone.card)
    learners = [m.text for m in methods if m.needs_calibration or (m.pruner.open_window and not windows)]
    if not learners:
        return ""
    return (
        f"{', '.join(learners)} must be calibrated on pages that are not evaluated, and {benchmark} "
        "brings none: name a benchmark with --calibration, set some pages aside with --calibration held-out, "
        "give windows with layers=…, or leave these methods out"
    )


def calibrated(
    setting: Setting, evaluated: Mapping[str, Store], methods: Sequence[Method], run: RunFolder
) -> list[Method]:
    """Methods with windows and thresholds. What was learned, and from what, goes into the run folder."""
    config = setting.config
    fit = [method for method in methods if method.failure is None]
    wants_window = any(m.pruner.open_window for m in fit)
    wants_pages = any(m.needs_calibration for m in fit)
    if not wants_window and not wants_pages:
        return prepare(methods, None, [], config.budgets)
    bound: BoundWindow | None = None
    if wants_window:
        bound = given_or_saved(config.window, setting.backbone, setting.stores, evaluated)
    data_set, store = None, None
    if setting.calibration is not None and (wants_pages or bound is None):
        data_set = calibration_data_set(setting.calibration)
        store = setting.store(data_set)
        check_disjoint(data_set.name, store.image_hashes, evaluated)
        by = "text" if setting.backbone.card.kind == TEXT_TOKENS else "pixels"
        disjoint = f"calibration set {data_set.name}: {len(store)} pages, none of which is evaluated (compared by {by})"
        setting.say(disjoint)
        run.log(disjoint)
    pages = []
    if wants_pages:
        assert store is not None, "`require_calibration` saw to it"
        pages = [store.page(index) for index in draw(range(len(store)), config.calibration_pages, config.seed)]
    if wants_window and bound is None:
        bound = _learned(setting, data_set, store)
    if bound is not None:
        _same_as_before(run, bound)
        setting.say(bound.told)
    with setting.progress("calibrate; a first run compiles", total=1, done=0) as advance:
        workers = workers_here(setting.engine, setting.workers)
        ready = prepare(methods, bound.window if bound else None, pages, config.budgets, workers)
        advance(1)
    run.write_json(RECORD, _record(data_set, store, bound, len(pages), ready))
    return ready


def _learned(setting: Setting, data_set: DataSet | None, store: Store | None) -> BoundWindow:
    config = setting.config
    if data_set is not None and store is not None:
        pairs, seed, progress = config.window_pairs, config.seed, setting.progress
        return measured(data_set, store, setting.backbone, pairs=pairs, seed=seed, progress=progress)
    bound = as_reported(setting.backbone.card)
    assert bound is not None, "`require_calibration` saw to it"
    return bound


def _same_as_before(run: RunFolder, bound: BoundWindow) -> None:
    """A run that goes on must go on with its window: a newer saved one would mix two in one table."""
    before = ((run.read_json(RECORD) or {}).get("window") or {}).get("window")
    if before is not None and before != str(bound.window):
        raise PruneBoardError(
            f"{run.folder} was begun with window {before}, and now it would be {bound.window} ({bound.told}); "
            f"choose another --out, or go on with --window {before}"
        )


def _record(
    data_set: DataSet | None, store: Store | None, bound: BoundWindow | None, pages: int, methods: Sequence[Method]
) -> dict[str, Any]:
    return {
        "benchmark": data_set.name if data_set else None,
        "store": store.key if store else None,
        "content": dict(data_set.content) if data_set else {},
        "window": dict(bound.origin) if bound else None,
        "pages": pages,
        "thresholds": {m.text: found for m in methods if (found := thresholds(m.pruner))},
    }


def thresholds(pruner: Pruner) -> dict[str, float]:
    """The thresholds that a pruner learned, as a run records them; at a budget of 1 there is none."""
    return {f"{b:g}": value for b, value in pruner.learned_thresholds.items() if math.isfinite(value)}
