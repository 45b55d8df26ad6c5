"""The data sets of an evaluation: what of each is missing is pruned, scored, measured, written, one after another."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from harness.backbones.base import choose_device
from harness.benchmarks.data_set import DataSet
from harness.engine.engine import PROCESSES, WorkEngine
from harness.evaluation.config import Config
from harness.evaluation.made_by import measuring, read_from
from harness.evaluation.methods import FULL, Method
from harness.evaluation.own_threshold import at_realised_ratio
from harness.evaluation.pruned_pages import Job
from harness.evaluation.results import DataSetEvaluator
from harness.evaluation.run_folder import RunFolder
from harness.evaluation.scores import gold_queries, load_queries
from harness.evaluation.tally import tally
from harness.files import checksum
from harness.instructions import processor
from harness.progress import Progress
from harness.store.reader import Store
from pruners.core.errors import PruneBoardError


@dataclass(frozen=True)
class _Plan:
    """What is missing of one data set."""

    config: Config
    store: Store
    methods: tuple[Method, ...]
    evaluator: DataSetEvaluator
    lost: dict[str, str]
    """Methods that cannot be evaluated on it, with the reason."""
    missing: tuple[str, ...]
    """Those of which there is no result."""

    def job(self) -> Job:
        """With all queries in memory: for as long as pages are scored, and no longer."""
        return Job(
            self.store,
            self.methods,
            self.config.budgets,
            self.config.seed,
            load_queries(self.store, range(len(self.store.query_ids)), self.config.device),
            gold_queries(self.evaluator.evaluate),
            self.config.profile,
        )


def evaluate_data_sets(
    config: Config,
    data_sets: Sequence[DataSet],
    stores: Mapping[str, Store],
    methods: Sequence[Method],
    run: RunFolder,
    workers: int,
    progress: Progress,
    made_by: Mapping[str, Mapping[str, str]],
    engine: WorkEngine = PROCESSES,
) -> dict[str, str]:
    """Evaluate what is missing; the reasons of methods that failed on some data set.

    `made_by` says of each method what its results are made of.
    """
    plans = [
        plan
        for data_set in data_sets
        if (plan := _plan(config, data_set, stores[data_set.name], methods, run, progress, workers, engine))
    ]
    failures: dict[str, str] = {}
    for plan in plans:
        failures = {**_evaluate(plan, run, workers, progress, made_by, engine), **failures}
    return failures


def _plan(
    config: Config,
    data_set: DataSet,
    store: Store,
    methods: Sequence[Method],
    run: RunFolder,
    progress: Progress,
    workers: int,
    engine: WorkEngine,
) -> _Plan | None:
    missing = [method for method in methods if not run.has(data_set.name, method.slug)]
    if not missing and run.has(data_set.name, FULL):
        run.scoring_state(data_set.name).remove()  # of a run that was killed when all was written
        return None
    evaluator = DataSetEvaluator.of(data_set, store.query_ids)
    if not evaluator.evaluate.query_ids:
        raise PruneBoardError(f"no query of {data_set.name} has a relevant page, so nothing can be measured on it")
    if left_out := len(store.query_ids) - len(evaluator.evaluate.query_ids):
        run.log(f"{data_set.name}: {left_out} queries have no relevant page and are left out")
    by = config.seed, data_set.name, progress, workers, engine
    wanted = tuple(method.text for method in missing)
    # who was killed when some results were written has counted all methods: they are gone on with together
    counted = methods if run.scoring_state(data_set.name).there else missing
    bound, lost = at_realised_ratio(counted, methods, store, *by)
    return _Plan(config, store, tuple(bound), evaluator, lost, wanted)


def _evaluate(
    plan: _Plan,
    run: RunFolder,
    workers: int,
    progress: Progress,
    made_by: Mapping[str, Mapping[str, str]],
    engine: WorkEngine,
) -> dict[str, str]:
    """Prune, score, measure and write a data set; the reasons of methods that failed on it."""
    store, name, start = plan.store, plan.evaluator.data_set.name, time.perf_counter()
    data = read_from(plan.evaluator.data_set, store)
    state = run.scoring_state(name, _key(plan, made_by, data))
    needed = tuple(method for method in plan.methods if method.text in plan.missing)
    if needed != plan.methods and state.read() is None:  # of other work: nothing is measured twice
        plan = replace(plan, methods=needed)
        state = run.scoring_state(name, _key(plan, made_by, data))
    with progress(f"{name}: prune, score", total=len(store), done=0) as advance:
        found = tally(plan.job(), plan.evaluator.evaluate, workers, advance, engine, state)
    run.write_result(FULL, plan.evaluator.full(found, store.dim), measuring() | data)

    scored = [method for method in plan.methods if method.text in plan.missing and method.text not in found.failures]
    with progress(f"{name}: measure", total=len(scored), done=0) as advance:
        for method in scored:
            made = {**made_by[method.text], **data}
            run.write_result(method.slug, plan.evaluator.method(method, found, store.dim), made)
            advance(1)
    state.remove()
    run.add_timings(name, found.milliseconds)
    run.log(f"{name}: {len(plan.methods)} methods on {len(store)} pages in {time.perf_counter() - start:.1f} s")
    return {**found.failures, **plan.lost}


def _key(plan: _Plan, made_by: Mapping[str, Mapping[str, str]], data: Mapping[str, str]) -> str:
    """What the counts of a data set depend on: who goes on with them must have all of it."""
    methods = [(m.text, m.trials, m.at, dict(made_by[m.text])) for m in plan.methods]
    device = choose_device(plan.config.device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    setting = plan.config.budgets, plan.config.seed, plan.config.profile, name
    depends = [methods, setting, measuring(), dict(data), plan.evaluator.evaluate.query_ids, processor()]
    return checksum(json.dumps(depends).encode())
