"""Finished folders of experiments as they are read to be joined, and what keeps them from being joined.

A folder is of one backbone. What would make a joint table say something wrong is refused by name: points that count
twice, other data under the same name, other settings. What only a reader should know becomes a note.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.drawing import labels
from harness.experiments.registry import EXPERIMENTS
from harness.experiments.workbench import group_of
from pruners.core.errors import PruneBoardError

READ = ("main-table", "budget-curve", "layer-curve", "window-ablation", "base-probe", "sr-ndcg")
"""The experiments that are joined."""

SAME = ("pairs", "seed", "trials")
"""Settings that one caption states for all backbones."""

TOLD = ("calibration", "window", "dtype", "max_visual_tokens")
"""Settings that may rightly differ between backbones."""

MEAN = "mean"
"""Not a benchmark, but the rows of a folder that average its benchmarks."""


@dataclass(frozen=True)
class JoinedFolder:
    """One folder, and what its experiments wrote."""

    folder: Path
    records: Mapping[str, Mapping[str, Any]]

    @property
    def first(self) -> Mapping[str, Any]:
        """All records of a folder were made by one backbone on one content."""
        return next(iter(self.records.values()))

    @property
    def card(self) -> Mapping[str, Any]:
        return self.first["backbone"]

    @property
    def checkpoint(self) -> tuple[str, str]:
        """What makes a backbone this one: its name and the revision of its weights."""
        return self.card["name"], self.card["revision"]

    @cached_property
    def benchmarks(self) -> dict[str, list[str]]:
        """The data sets behind the averages that this folder gives, by benchmark."""
        rows = [row for record in self.records.values() for row in record["rows"]]
        named = [name for name in dict.fromkeys(row.get("benchmark") for row in rows) if name not in (None, MEAN)]
        data_sets = list(self.first["benchmark"])
        own = [name for name in named if name not in {group_of(data_set, "") for data_set in data_sets}]
        groups = {data_set: group_of(data_set, own[0] if own else "") for data_set in data_sets}
        return {name: sorted(data_set for data_set in data_sets if groups[data_set] == name) for name in named}

    def windows(self) -> set[str]:
        """The layers that `sap` read here."""
        return {record["window"]["window"] for record in self.records.values() if "window" in record}

    def identity(self) -> dict[str, Any]:
        """What the joint files say about where their figures come from."""
        key = self.folder.resolve().name.rpartition("--")[2]
        kept = {name: self.first[name] for name in ("backbone", "benchmark", "settings")}
        code = {name: record.get("measured_with") for name, record in self.records.items()}
        return {"folder": str(self.folder), "key": key, **kept, "experiments": code}


def read_sources(folders: Sequence[Path]) -> tuple[list[JoinedFolder], list[str]]:
    """The folders, checked; and notes for a reader of what they give together."""
    sources, notes = [], []
    for folder in folders:
        records = read_records(folder)
        if records and all("joined" in record for record in records.values()):
            notes.append(f"{folder} is itself a join and was skipped")
            continue
        sources.append(_source(folder, records))
    if not sources:
        raise PruneBoardError("no folder to join: name those that `harness experiment all` wrote, one a backbone")
    _refuse_what_misleads(sources)
    return sources, [*notes, *_differences(sources)]


def read_records(folder: Path) -> dict[str, dict[str, Any]]:
    """Every finished experiment of a folder: its JSON file is written last."""
    found = {}
    for name in EXPERIMENTS:
        path = folder / f"{name}.json"
        if not path.is_file():
            continue
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise PruneBoardError(f"{path} is not whole ({error}); make it again with --again") from None
        if not isinstance(record, dict) or not {"rows", "facts"} <= set(record):
            raise PruneBoardError(f"{path} was not written by `harness experiment`")
        found[name] = record
    return found


def _source(folder: Path, records: dict[str, dict[str, Any]]) -> JoinedFolder:
    if not folder.is_dir():
        raise PruneBoardError(f"there is no folder {folder}; `harness experiment all` writes one a backbone")
    if not records:
        inside = sorted(path for path in folder.iterdir() if path.is_dir() and read_records(path))
        if inside:
            raise PruneBoardError(f"{folder} holds {len(inside)} folders of experiments: name those, {folder}/*")
        if (folder / "runs").is_dir():
            raise PruneBoardError(f"nothing is finished in {folder} yet: its experiments were interrupted; run them on")
        raise PruneBoardError(f"{folder} is not a folder of experiments: no NAME.json of `harness experiment` is in it")
    joined = {name: record for name, record in records.items() if name in READ}
    if not joined:
        raise PruneBoardError(
            f"nothing in {folder} can be joined: it has {', '.join(records)}; join reads {', '.join(READ)}"
        )
    return JoinedFolder(folder, joined)


def _refuse_what_misleads(sources: Sequence[JoinedFolder]) -> None:
    """Everything that would put a wrong figure into a joint table, by name and with the way out."""
    for setting in SAME:
        values = _by_value((s, record["settings"].get(setting)) for s in sources for record in s.records.values())
        if len(values) > 1:
            raise PruneBoardError(
                f"made with different --{setting}: {_told(values)}. One table of both would mislead: run again with one"
            )
    owner: dict[tuple[tuple[str, str], str], JoinedFolder] = {}
    for source in sources:
        for benchmark in source.benchmarks:
            other = owner.setdefault((source.checkpoint, benchmark), source)
            if other is not source:
                raise PruneBoardError(
                    f"{other.folder} and {source.folder} are both {source.card['name']} on {benchmark}: "
                    "every point would count twice; name one of them"
                )
    for benchmark in dict.fromkeys(name for source in sources for name in source.benchmarks):
        sets = _by_value((s, ", ".join(s.benchmarks[benchmark])) for s in sources if benchmark in s.benchmarks)
        if len(sets) > 1:
            raise PruneBoardError(f"averages of {benchmark} are over different data sets: {_told(sets)}")
    for data_set in dict.fromkeys(data_set for source in sources for data_set in source.first["benchmark"]):
        content = _by_value((s, s.first["benchmark"][data_set]) for s in sources if data_set in s.first["benchmark"])
        if len(content) > 1:
            raise PruneBoardError(
                f"{data_set} was not the same data everywhere: {_told(content)}; evaluate one revision"
            )
    for checkpoint in dict.fromkeys(source.checkpoint for source in sources):
        windows = _by_value((s, window) for s in sources if s.checkpoint == checkpoint for window in s.windows())
        if len(windows) > 1:
            raise PruneBoardError(
                f"{checkpoint[0]} was pruned with different windows: {_told(windows)}; run again with one --window"
            )


def _differences(sources: Sequence[JoinedFolder]) -> list[str]:
    found = []
    kinds = _by_value((source, source.card.get("kind", "visual")) for source in sources)
    if len(kinds) > 1:
        found.append(f"vectors stand for different things, so do not compare these backbones: {_told(kinds)}")
    for setting in TOLD:
        values = _by_value((source, source.first["settings"].get(setting)) for source in sources)
        if len(values) > 1:
            found.append(f"{setting} differs: {_told(values)}")
    codes = _by_value((s, code) for s in sources for code in s.identity()["experiments"].values())
    if len(codes) > 1:
        found.append(f"made by different states of the code, or with different libraries: {_told(codes)}")
    return found


def _by_value(pairs: Iterable[tuple[JoinedFolder, Any]]) -> dict[str, list[str]]:
    """Value -> the folders that have it."""
    found: dict[str, list[str]] = {}
    for source, value in pairs:
        folders = found.setdefault("not given" if value is None else str(value), [])
        if source.folder.name not in folders:
            folders.append(source.folder.name)
    return found


def _told(values: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{value} in {', '.join(folders)}" for value, folders in values.items())


def titles(sources: Sequence[JoinedFolder]) -> dict[tuple[str, str], str]:
    """The words for each backbone; two checkpoints of one name are told apart by their revisions."""
    checkpoints = list(dict.fromkeys(source.checkpoint for source in sources))
    names = [name for name, _ in checkpoints]
    return {
        (name, revision): labels.backbone(name)
        if names.count(name) == 1
        else f"{labels.backbone(name)} @{revision.rpartition('-')[2][:7]}"
        for name, revision in checkpoints
    }
