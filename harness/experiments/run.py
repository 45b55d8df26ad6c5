"""Running experiments: one after another, each written when it is done, and not done again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.drawing import labels
from harness.evaluation.run_folder import environment
from harness.experiments.outcome import ENDINGS, Outcome, write_outcome
from harness.experiments.registry import EXPERIMENTS, Experiment
from harness.experiments.workbench import ExperimentSettings, Workbench, measured_with
from pruners.core.errors import PruneBoardError


@dataclass(frozen=True)
class Done:
    """An experiment that is finished: now (`outcome`), or before (`None`)."""

    experiment: Experiment
    files: dict[str, Path]
    outcome: Outcome | None = None
    failure: str | None = None


def run_experiments(workbench: Workbench, experiments: Sequence[Experiment], *, again: bool = False) -> list[Done]:
    """Run what is not finished. With several, one that cannot be run is named and the others go on."""
    _refuse_pruner(workbench.settings.pruner, experiments)
    finished = []
    with workbench.progress("experiments", total=len(experiments), done=0) as advance:
        for experiment in experiments:
            advance(0, note=experiment.name)
            files = {ending: workbench.folder / f"{experiment.name}.{ending}" for ending in ENDINGS}
            if not again and _is_finished(workbench, experiment, files["json"]):
                finished.append(Done(experiment, files))
            else:
                finished.append(_run(workbench, experiment, files, alone=len(experiments) == 1))
            advance(1)
    return finished


def _refuse_pruner(asked: str, experiments: Sequence[Experiment]) -> None:
    """A method that no experiment here would show is not passed over in silence."""
    if asked != ExperimentSettings.pruner and not any(experiment.takes_pruner for experiment in experiments):
        names = ", ".join(experiment.name for experiment in experiments)
        takers = ", ".join(experiment.name for experiment in EXPERIMENTS.values() if experiment.takes_pruner)
        raise PruneBoardError(
            f"{names} shows the paper's methods: --pruner is for {takers}; `harness evaluate` measures {asked!r}"
        )


def _is_finished(workbench: Workbench, experiment: Experiment, file: Path) -> bool:
    """Whether it is there, and was made by this code and these libraries."""
    if not file.is_file():
        return False
    try:
        before = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise PruneBoardError(f"{file} is not whole ({error}); make it again with --again") from None
    same = isinstance(before, dict) and before.get("measured_with") == measured_with()
    if not same:
        workbench.say(f"{experiment.name} was made by other code or libraries: making it again")
    return same


def _run(workbench: Workbench, experiment: Experiment, files: dict[str, Path], alone: bool) -> Done:
    try:
        outcome = experiment.load()(workbench)
    except PruneBoardError as error:
        if alone:
            raise
        return Done(experiment, files, failure=str(error))
    write_outcome(
        workbench.folder, experiment.name, outcome, _about(workbench, experiment), _title(workbench, experiment)
    )
    return Done(experiment, files, outcome)


def _title(workbench: Workbench, experiment: Experiment) -> str:
    names = {"benchmark": lambda: workbench.benchmark.name, "calibration": lambda: workbench.calibration.name}
    data = names[experiment.measured_on]() if experiment.measured_on in names else None
    return labels.title(workbench.backbone.card.name, data)


def _about(workbench: Workbench, experiment: Experiment) -> dict[str, Any]:
    """What the figures rest on."""
    about: dict[str, Any] = {
        "experiment": experiment.name,
        "stands_for": f"SAP paper, {experiment.stands_for}",
        "reproduces": experiment.reproduces,
        "cannot": experiment.cannot,
        "measured_on": experiment.measured_on,
        "caption": _caption(workbench, experiment),
        **workbench.identity,
    }
    if "bound" in vars(workbench):  # a window was needed
        about["window"] = dict(workbench.bound.origin)
    return {**about, "measured_with": measured_with(), "environment": environment()}


def _caption(workbench: Workbench, experiment: Experiment) -> str:
    """What a reader of the table alone must know."""
    where = ", ".join(map(labels.benchmark, workbench.groups))
    what = experiment.about[0].upper() + experiment.about[1:]
    return f"{what}. Backbone: {labels.backbone(workbench.backbone.card.name)}; benchmark: {where}."


def stored_rows(done: Done) -> dict[str, Any]:
    """What an experiment wrote when it ran."""
    return json.loads(done.files["json"].read_text(encoding="utf-8"))
