"""Running experiments: one after another, each written when it is done, and not done again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.evaluation.run_folder import environment
from harness.experiments import labels
from harness.experiments.outcome import ENDINGS, Outcome, write_outcome
from harness.experiments.registry import Experiment
from harness.experiments.workbench import Workbench, measured_with
from pruners.core.errors import PruneBoardError


@dataclass(frozen=True)
class Done:
    """An experiment that is finished: now (`outcome`), or before (`None`)."""

    experiment: Experiment
    files: dict[str, Path]
    outcome: Outcome | None = None
    failure: str | None = None


def run_experiments(lab: Workbench, experiments: Sequence[Experiment], *, again: bool = False) -> list[Done]:
    """Run what is not finished. With several, one that cannot be run is named and the others go on."""
    finished = []
    with lab.progress("experiments", total=len(experiments), done=0) as advance:
        for experiment in experiments:
            advance(0, note=experiment.name)
            files = {ending: lab.folder / f"{experiment.name}.{ending}" for ending in ENDINGS}
            if not again and _is_finished(lab, experiment, files["json"]):
                finished.append(Done(experiment, files))
            else:
                finished.append(_run(lab, experiment, files, alone=len(experiments) == 1))
            advance(1)
    return finished


def _is_finished(lab: Workbench, experiment: Experiment, file: Path) -> bool:
    """Whether it is there, and was made by this code and these libraries."""
    if not file.is_file():
        return False
    try:
        before = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise PruneBoardError(f"{file} is not whole ({error}); make it again with --again") from None
    same = isinstance(before, dict) and before.get("measured_with") == measured_with()
    if not same:
        lab.say(f"{experiment.name} was made by other code or libraries: making it again")
    return same


def _run(lab: Workbench, experiment: Experiment, files: dict[str, Path], alone: bool) -> Done:
    try:
        outcome = experiment.load()(lab)
    except PruneBoardError as error:
        if alone:
            raise
        return Done(experiment, files, failure=str(error))
    write_outcome(lab.folder, experiment.name, outcome, _about(lab, experiment), _title(lab, experiment))
    return Done(experiment, files, outcome)


def _title(lab: Workbench, experiment: Experiment) -> str:
    names = {"benchmark": lambda: lab.benchmark.name, "calibration": lambda: lab.calibration.name}
    data = names[experiment.measured_on]() if experiment.measured_on in names else None
    return labels.title(lab.backbone.card.name, data)


def _about(lab: Workbench, experiment: Experiment) -> dict[str, Any]:
    """What the figures rest on."""
    about: dict[str, Any] = {
        "experiment": experiment.name,
        "stands_for": f"SAP paper, {experiment.stands_for}",
        "reproduces": experiment.reproduces,
        "cannot": experiment.cannot,
        "measured_on": experiment.measured_on,
        "caption": _caption(lab, experiment),
        **lab.identity,
    }
    if "bound" in vars(lab):  # a window was needed
        about["window"] = dict(lab.bound.origin)
    return {**about, "measured_with": measured_with(), "environment": environment()}


def _caption(lab: Workbench, experiment: Experiment) -> str:
    """What a reader of the table alone must know."""
    where = ", ".join(map(labels.benchmark, lab.groups))
    what = experiment.about[0].upper() + experiment.about[1:]
    return f"{what}. Backbone: {labels.backbone(lab.backbone.card.name)}; benchmark: {where}."


def stored_rows(done: Done) -> dict[str, Any]:
    """What an experiment wrote when it ran."""
    return json.loads(done.files["json"].read_text(encoding="utf-8"))
