"""What a stored submission takes to be measured again: the settings of an evaluation, and the method's own file.

Submissions of before 0.2 do not say their seed and calibration pages; the defaults, which all of them used, are taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.backbones import registry
from harness.benchmarks.embedded import NAMES
from harness.benchmarks.known import known
from harness.evaluation.config import Config
from harness.submissions.folder import read_submission
from harness.submissions.schema import Submission
from pruners.core import source
from pruners.core.errors import PruneBoardError


@dataclass(frozen=True)
class Given:
    """What a maintainer says where a submission cannot."""

    backbone: str | None = None
    """Selector of a checkpoint of one's own."""
    data: Path | None = None
    """Folder that holds benchmarks by their names, beside those that the project knows."""
    pruner: Path | None = None
    """The method's file, where the submission does not carry it."""


@dataclass(frozen=True)
class Rerun:
    """One submission, with the settings that measure it again."""

    path: Path
    submission: Submission
    config: Config
    text: str
    """The method, as a run names it."""


def rerun(path: Path, submission: Submission, given: Given, scratch: Path) -> Rerun:
    """How to measure a submission again. A method's file is written into `scratch`, and not run."""
    if submission.claim == "reported":
        raise PruneBoardError(f"{submission.id} is a paper's printed figures: there is nothing to run again")
    method, benchmark = submission.method, submission.benchmark.name
    selector, text = _pruner(submission, given, scratch / submission.id)
    seen, said = submission.settings, method.calibrated
    data, window, pages = _said(said, "on", "benchmark"), _said(said, "window", "window"), _said(said, "on", "pages")
    learned_from = pages if isinstance(pages, int) and pages > 0 else Config.calibration_pages
    budgets = tuple(sorted({cell.budget for cell in submission.cells} - {1.0}))
    trials = max(cell.trials for cell in submission.cells)
    config = Config(
        backbone=given.backbone or _backbone(submission),
        benchmark=_benchmark(benchmark, given),
        calibration=_calibration(benchmark, str(data) if data else None, given),
        pruners=(selector,),
        budgets=budgets or (1.0,),
        trials=seen.trials if seen else (trials if trials > 1 else None),
        seed=seen.seed if seen else Config.seed,
        window=str(window) if window else (seen.window if seen else None),
        profile=submission.backbone.profile or "visual",
        calibration_pages=seen.calibration_pages if seen else learned_from,
        window_pairs=seen.window_pairs if seen else Config.window_pairs,
        dtype=seen.dtype if seen else None,
        max_visual_tokens=seen.max_visual_tokens if seen else None,
    )
    return Rerun(path, submission, config, text)


def measured(paths: Iterable[Path]) -> list[Path]:
    """Submissions that somebody measured, not papers' printed figures; what cannot be read is among them."""
    return [path for path in paths if _claim(path) != "reported"]


def _claim(path: Path) -> str | None:
    try:
        return read_submission(path).claim
    except PruneBoardError:  # said when it is measured again
        return None


def together(reruns: Sequence[Rerun]) -> list[tuple[Config, list[Rerun]]]:
    """Submissions that one evaluation measures: their settings agree, or are left open by one of the two."""
    groups: list[tuple[Config, list[Rerun]]] = []
    for one in reruns:
        for i, (config, members) in enumerate(groups):
            joint = _joint(config, one.config)
            if joint is not None and one.text not in [member.text for member in members]:
                groups[i] = joint, [*members, one]
                break
        else:
            groups.append((one.config, [one]))
    return groups


def _joint(a: Config, b: Config) -> Config | None:
    """Both at once, or None if they disagree."""
    chosen = {}
    for name in ("calibration", "trials", "window"):
        mine, theirs = getattr(a, name), getattr(b, name)
        if None not in (mine, theirs) and mine != theirs:
            return None
        chosen[name] = theirs if mine is None else mine
    both = replace(a, pruners=(*a.pruners, *b.pruners), **chosen)
    return both if replace(both, pruners=()) == replace(b, pruners=(), **chosen) else None


def _pruner(submission: Submission, given: Given, folder: Path) -> tuple[str, str]:
    """The method's selector, and its text in a run."""
    method = submission.method
    if method.file_hash is None:
        return method.expression, method.expression
    name, colon, text = method.expression.partition(":")
    if not colon:  # a composition around it: adaptive(mine)
        name, text = "", method.expression
    if given.pruner is not None:
        found = _fingerprint(given.pruner.resolve())
        if method.source_hash is None:
            raise PruneBoardError(f"{submission.id} does not say which file measured it: no file can be shown to be it")
        if found != method.source_hash:
            raise PruneBoardError(f"{given.pruner} is not the file that {submission.id} was measured with: {found}")
        return f"{given.pruner}:{text}", text
    if not method.source:
        raise PruneBoardError(
            f"{submission.id} is of a method that is not built in, and does not carry its source: "
            "ask the submitter for the file, and give it with --pruner FILE"
        )
    for path, code in method.source.items():
        target = (folder / path).resolve()
        if not target.is_relative_to(folder.resolve()) or target.suffix != ".py":
            raise PruneBoardError(f"{submission.id}: {path!r} cannot be a file of a method")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(code, encoding="utf-8")
    for path in [name] if colon else method.source:
        file = folder.resolve() / path
        if file.is_file() and _fingerprint(file) == method.source_hash:
            return f"{file}:{text}", text
    raise PruneBoardError(f"{submission.id}: the source that it carries is not the file that its hash is of")


def _fingerprint(file: Path) -> str:
    return source.fingerprint(source.with_imports(file, file.parent), file.parent)


def _backbone(submission: Submission) -> str:
    backbone = submission.backbone
    declared = registry.catalogue().get(backbone.name)
    if declared is None or declared.options.get("checkpoint") != backbone.checkpoint:
        raise PruneBoardError(
            f"{backbone.name} ({backbone.checkpoint}) is no backbone of this project: name it with --backbone, as in "
            f"--backbone colqwen2={backbone.checkpoint}"
        )
    return backbone.name


def _benchmark(name: str, given: Given) -> str:
    if name in NAMES or name in known()["benchmarks"] or name in known()["tasks"]:
        return name
    folder = given.data / name if given.data else None
    if folder is not None and given.data and not folder.resolve().is_relative_to(given.data.resolve()):
        raise PruneBoardError(f"{name!r} is no name of a benchmark below {given.data}")
    if folder is None or not folder.is_dir():
        place = f"{folder} is not there" if folder else "name a folder that holds it with --data"
        raise PruneBoardError(
            f"the data of {name} is not part of this project: {place}. docs/trust.md says how to get it"
        )
    return str(folder)


def _calibration(benchmark: str, name: str | None, given: Given) -> str | None:
    """Of data that comes with a benchmark none need be named."""
    if name is None or benchmark in NAMES or benchmark in known()["benchmarks"]:
        return None
    return _benchmark(name, given)


def _said(calibrated: Mapping[str, Any], *keys: str) -> Any:
    """What a submission says of its calibration, which may be any JSON; None: nothing."""
    found: Any = calibrated
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found
