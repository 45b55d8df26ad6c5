"""Benchmarks known by name: `known.json`, written from mteb's own metadata by `scripts/pin_benchmarks.py`.

Reading it imports nothing heavy, so benchmarks can be listed at once. It says what a task should be like (revision,
pages, queries, characters, qrels, and content hashes where someone has pinned them); what was really read is compared.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pruners.core.errors import PruneBoardError

MANIFEST = Path(__file__).with_name("known.json")
COLPALI_TRAIN, V1_MIX = "colpali-train", "vidore-v1-mix"
CALIBRATION_SETS = {
    COLPALI_TRAIN: "500 pairs of vidore/colpali_train_set, seed 42",
    V1_MIX: "100 pairs of each of five ViDoRe v1 tasks, seed 42",
}
"""Sets to calibrate real backbones on; `harness/benchmarks/calibration_sets.py` reads them."""
_DRAW = re.compile(rf"{COLPALI_TRAIN}(?:\((?P<options>[^()]*)\))?")


@lru_cache(maxsize=1)
def known() -> dict[str, Any]:
    """`source`, `benchmarks` (name -> tasks) and `tasks` (name -> facts)."""
    return json.loads(MANIFEST.read_text(encoding="utf-8"))


def task_names(selector: str) -> list[str]:
    """The tasks that a benchmark or a single task's name stands for; none if it is not known."""
    facts = known()
    return list(facts["benchmarks"].get(selector, [selector] if selector in facts["tasks"] else []))


def superseded(tasks: Iterable[str]) -> list[str]:
    """A sentence for each task that mteb has replaced by another."""
    facts = known()["tasks"]
    return [
        f"{task} is superseded by {facts[task]['superseded_by']}, says mteb: use that one for new figures"
        for task in tasks
        if "superseded_by" in facts[task]
    ]


def selectors() -> list[str]:
    """Every name that can be typed after `--benchmark` and is read through mteb."""
    facts = known()
    return [*facts["benchmarks"], *CALIBRATION_SETS, *facts["tasks"]]


def training_draw(selector: str) -> dict[str, Any] | None:
    """What `colpali-train(pairs=1000,seed=7)` asks for; nothing in particular by `colpali-train` alone.

    None if it is not about the training corpus.
    """
    match = _DRAW.fullmatch(selector.strip())
    if match is None:
        return None
    found: dict[str, Any] = {}
    for option in filter(None, (part.strip() for part in (match["options"] or "").split(","))):
        name, _, value = (part.strip() for part in option.partition("="))
        if name in ("path", "revision") and value:
            found[name] = value
        elif name in ("pairs", "seed") and value.isdigit() and (name, int(value)) != ("pairs", 0):
            found[name] = int(value)
        else:
            raise PruneBoardError(
                f"{selector!r}: {option!r} is not understood; write {COLPALI_TRAIN}(pairs=1000,seed=7), "
                "path=… for a folder with its files, or revision=… for another commit"
            )
    return found


def differences(
    task: str,
    subsets: Mapping[str, Mapping[str, int]],
    revision: str | None,
    content: Mapping[str, Mapping[str, str]],
) -> list[str]:
    """How what was read of a task differs from what is known of it, in words; empty if it does not.

    `subsets` counts what mteb gave for each language, `revision` is None if the files do not say theirs.
    """
    facts, found = known()["tasks"][task], []
    if revision is not None and revision != facts["revision"]:
        found.append(f"revision {revision} was read, {facts['revision']} is pinned")
    for subset, expected in facts["subsets"].items():
        read = subsets.get(subset)
        if read is None:
            found.append(f"{subset} is missing")
            continue
        where = "" if subset == "default" else f" in {subset}"
        found += [
            f"{read[what]:,} {what} were read{where}, {expected[what]:,} are known"
            for what in ("pages", "queries", "characters", "qrels")
            if read[what] != expected[what]
        ]
    for name, hashes in facts.get("content", {}).items():
        for part, expected in hashes.items():
            if (read_hash := content.get(name, {}).get(part)) != expected:
                found.append(f"{part} of {name} hash to {read_hash}, {expected} is pinned")
    return found


def cached(task: str) -> str:
    """Whether the data of a task is on this machine: `yes`, `no`, or `another revision`."""
    facts = known()["tasks"][task]
    return cached_revision(facts["dataset"], facts["revision"])


def cached_revision(dataset: str, revision: str) -> str:
    """Looks where `huggingface_hub` and `datasets` keep files, without importing them."""
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    built = Path(os.environ.get("HF_DATASETS_CACHE") or home / "datasets")
    snapshots = {path.name for path in (hub / f"datasets--{dataset.replace('/', '--')}").glob("snapshots/*")}
    owner, _, name = dataset.partition("/")
    prepared = {path.name for path in (built / f"{owner}___{snake_case(name)}").glob("*/*/*") if path.is_dir()}
    if revision in snapshots | prepared:
        return "yes"
    return "another revision" if snapshots | prepared else "no"


def snake_case(name: str) -> str:
    """As `datasets` names its folders: syntheticDocQA_energy is synthetic_doc_qa_energy."""
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z\d])([A-Z])", r"\1_\2", name).lower()
