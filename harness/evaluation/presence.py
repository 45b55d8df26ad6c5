"""What an evaluation needs from elsewhere, and whether it is on this machine: checkpoints and data sets.

Nothing is fetched, and no hub is asked: what is not in a cache counts as absent.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.backbones import registry
from harness.backbones.checkpoint import CheckpointError
from harness.backbones.contract import Backbone, Options
from harness.benchmarks.benchmark import HELD_OUT, REST, own_calibration
from harness.benchmarks.embedded import CALIBRATION, NAMES
from harness.benchmarks.known import COLPALI_TRAIN, V1_MIX, cached, cached_revision, known, task_names, training_draw
from harness.evaluation.config import Config
from harness.evaluation.methods import Method
from pruners.core.errors import PruneBoardError


@dataclass(frozen=True)
class DataNeed:
    """A data set that an evaluation reads: a task of mteb, or all of a benchmark that is a folder."""

    name: str
    here: bool
    pages: int | None = None
    queries: int | None = None
    on_disk: str = ""
    """The benchmark to load it by, if loading only reads."""


def options_of(config: Config) -> Options:
    return Options(device=config.device, dtype=config.dtype, max_visual_tokens=config.max_visual_tokens)


@contextmanager
def offline() -> Iterator[None]:
    """The hub's libraries look at this disk only, and do not try again and again."""
    from huggingface_hub import constants

    before, constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE, True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def hub_is_off() -> bool:
    """Whether the user told the hub's libraries to stay offline."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE or os.environ.get("HF_DATASETS_OFFLINE") == "1")


def find_backbone(config: Config) -> tuple[Backbone | None, str]:
    """The backbone, or None and the name of the checkpoint that must be fetched. Its weights are not loaded."""
    with offline():
        try:
            return registry.load(config.backbone, options_of(config)), ""
        except CheckpointError:
            if name := _hub_name(config.backbone):
                return None, name
            raise  # a folder: nothing can be fetched, and the reason is the user's to know


def _hub_name(selector: str) -> str:
    """A checkpoint that lies in a hub, with its revision; empty if it is a folder, or none at all."""
    choice = registry.choose(selector)
    name = choice.checkpoint
    if name.count("/") != 1 or name.startswith((".", "/", "~")) or Path(name).is_dir():
        return ""
    return name + (f"@{choice.revision}" if choice.revision else "")


def data_needs(selector: str) -> list[DataNeed]:
    """The data sets behind `--benchmark` or `--calibration`."""
    base, mark, side = selector.rpartition("#")
    if mark and side in (HELD_OUT, REST):
        return data_needs(base)
    if tasks := task_names(selector):
        return [_task(name) for name in tasks]
    if selector == V1_MIX:
        from harness.benchmarks.calibration_sets import MIX

        return [_task(f"{name}Retrieval") for name in MIX]
    if (drawn := training_draw(selector)) is not None:
        from harness.benchmarks.calibration_sets import PAIRS
        from harness.benchmarks.training_corpus import REVISION, TRAINING_CORPUS

        here = "path" in drawn or cached_revision(TRAINING_CORPUS, drawn.get("revision", REVISION)) == "yes"
        pairs = int(drawn.get("pairs", PAIRS))
        return [DataNeed(selector, here, pairs, pairs)]
    return [DataNeed(selector, True, on_disk=selector)]


def calibration_of(config: Config, methods: Sequence[Method]) -> str | None:
    """The benchmark that methods will be calibrated on, if one of them needs it."""
    if not any(m.needs_calibration or m.pruner.open_window for m in methods):
        return None
    if config.calibration or config.benchmark.endswith(f"#{REST}"):
        return config.calibration or config.benchmark.removesuffix(REST) + HELD_OUT
    if config.benchmark in NAMES:
        return CALIBRATION
    return COLPALI_TRAIN if task_names(config.benchmark) else own_calibration(Path(config.benchmark))


def absent(config: Config, methods: Sequence[Method]) -> list[str]:
    """What must be fetched, in words."""
    checkpoint = find_backbone(config)[1] if _hub_name(config.backbone) else ""
    calibration = calibration_of(config, methods)
    needs = [*data_needs(config.benchmark), *(data_needs(calibration) if calibration else [])]
    data = dict.fromkeys(f"data set {need.name}" for need in needs if not need.here)
    return [*([f"checkpoint {checkpoint}"] if checkpoint else []), *data]


def require_reachable(missing: Sequence[str]) -> None:
    """Whoever works offline is told of everything that is missing at once, before any work."""
    if missing and hub_is_off():
        raise PruneBoardError(
            f"not on this machine, and the hub is switched off (HF_HUB_OFFLINE): {'; '.join(missing)}. Fetch them "
            "where there is a network (`hf download`), or switch it on"
        )


def _task(name: str) -> DataNeed:
    facts = known()["tasks"][name]
    pages = [counts["pages"] for counts in facts["subsets"].values()]
    queries = sum(counts["queries"] for counts in facts["subsets"].values())
    found = cached(name)
    here = found == "yes" or (found != "no" and hub_is_off())  # offline another revision is read, which is then said
    return DataNeed(name, here, pages[0] if facts["shared_corpus"] else sum(pages), queries)
