"""From what a user types after `--benchmark` to data sets: an embedded benchmark by name, or a folder of one's own."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.benchmarks.folder import Benchmark, BenchmarkError, read_folder

EMBEDDED = Path(__file__).parents[1] / "minidocs" / "data"
CALIBRATION = "minidocs-calibration"
NAMES = {
    "minidocs": ("minidocs-v1", "minidocs-v2"),
    "minidocs-v1": ("minidocs-v1",),
    "minidocs-v2": ("minidocs-v2",),
    CALIBRATION: (CALIBRATION,),
}


@dataclass(frozen=True)
class Suite:
    """A benchmark: its data sets, and the name of the calibration set that belongs to it, if one does."""

    name: str
    tasks: tuple[Benchmark, ...]
    calibration: str | None = None


def load_suite(selector: str) -> Suite:
    """A benchmark by name, or the folder of one data set, or a folder of such folders."""
    if selector in NAMES:
        folders = [folder for part in NAMES[selector] for folder in _data_sets(EMBEDDED / part)]
        return Suite(selector, _read(folders), CALIBRATION)
    folder = Path(selector)
    if not folder.is_dir():
        near = difflib.get_close_matches(selector, NAMES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(NAMES)}, and folders in ViDoRe's layout"
        raise BenchmarkError(f"there is no benchmark {selector!r}; {hint}")
    return Suite(folder.resolve().name, _read(_data_sets(folder)))


def _data_sets(folder: Path) -> list[Path]:
    if (folder / "corpus").is_dir():
        return [folder]
    found = sorted(path for path in folder.iterdir() if (path / "corpus").is_dir())
    if not found:
        raise BenchmarkError(f"{folder} has no corpus/ folder, nor has a folder in it")
    return found


def _read(folders: Sequence[Path]) -> tuple[Benchmark, ...]:
    """Data sets are named by their folder; one of an embedded benchmark also by that benchmark."""
    tasks = []
    for folder in folders:
        task = read_folder(folder)
        if not task.page_ids or not task.queries:
            raise BenchmarkError(f"{folder} is empty: {len(task.page_ids)} pages, {len(task.queries)} queries")
        tasks.append(replace(task, name=f"{folder.parent.name}/{folder.name}") if _is_embedded(folder) else task)
    return tuple(tasks)


def _is_embedded(folder: Path) -> bool:
    return folder.resolve().is_relative_to(EMBEDDED.resolve())
