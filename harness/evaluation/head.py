"""How a long run begins: a line that says what is left to encode and what it takes, or an error if no disk holds it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from harness.backbones.contract import Backbone
from harness.benchmarks.benchmark import Benchmark, load_benchmark
from harness.benchmarks.data_set import DataSet
from harness.engine.engine import PROCESSES, WorkEngine
from harness.evaluation.config import Config
from harness.evaluation.methods import Method
from harness.evaluation.plan import Plan, data_set_plan, make_plan, pages_left, plan
from harness.evaluation.presence import calibration_of, data_needs
from harness.store.part import WHOLE, Part
from pruners.core.errors import PruneBoardError

LONG = 2000
"""Pages to encode from which on a run begins with its plan: fewer are done before anyone has read it."""


def head_of_run(
    config: Config,
    methods: Sequence[Method],
    benchmark: Benchmark,
    backbone: Backbone,
    stores: Path,
    workers: int,
    engine: WorkEngine = PROCESSES,
) -> str | None:
    """Of an evaluation, whose calibration pages count too; None if it is short."""
    rows = [data_set_plan(data_set, "evaluate", backbone, stores) for data_set in benchmark.data_sets]
    needs = data_needs(calibration) if (calibration := calibration_of(config, methods)) else []
    here = load_benchmark(needs[0].on_disk).data_sets if needs and needs[0].on_disk else []
    rows += [data_set_plan(data_set, "calibrate", backbone, stores) for data_set in here]
    if pages_left(rows) + sum(need.pages or 0 for need in needs) < LONG:
        return None
    found = plan(config, methods, stores, workers, loaded=(benchmark, backbone), engine=engine)
    return _line(found) if found.left >= LONG else None


def head_of_encoding(
    data_sets: Sequence[DataSet],
    backbone: Backbone,
    stores: Path,
    engine: WorkEngine = PROCESSES,
    *,
    vector_dtype: str = "float16",
    part: Part = WHOLE,
) -> str | None:
    """Of whatever encodes data sets, or a part of each; None if it is short."""
    rows = [data_set_plan(data_set, "encode", backbone, stores, vector_dtype, part) for data_set in data_sets]
    if pages_left(rows) < LONG:
        return None
    sample = next(data_set for data_set, row in zip(data_sets, rows, strict=True) if row.left)
    return _line(make_plan(rows, backbone, sample, stores, os.cpu_count() or 1, engine, vector_dtype=vector_dtype))


def _line(found: Plan) -> str:
    if problems := found.problems():
        raise PruneBoardError(
            f"{'; '.join(problems)}. Choose another place with --store; `harness evaluate --dry-run` shows a plan"
        )
    return found.sentence()
