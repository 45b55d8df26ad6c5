"""From what a user types after `--benchmark` to data sets: an embedded benchmark by name, or a folder of one's own."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.benchmarks.embedded import CALIBRATION, EMBEDDED, NAMES, BenchmarkError, data_set_folders, data_sets
from harness.benchmarks.folder import Benchmark, read_folder


@dataclass(frozen=True)
class Suite:
    """A benchmark: its data sets, and the name of the calibration set that belongs to it, if one does."""

    name: str
    tasks: tuple[Benchmark, ...]
    calibration: str | None = None


def load_suite(selector: str) -> Suite:
    """A benchmark by name, or the folder of one data set, or a folder of such folders."""
    if selector in NAMES:
        return Suite(selector, _read(data_set_folders(selector)), CALIBRATION)
    folder = Path(selector)
    if not folder.is_dir():
        near = difflib.get_close_matches(selector, NAMES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(NAMES)}, and folders in ViDoRe's layout"
        raise BenchmarkError(f"there is no benchmark {selector!r}; {hint}")
    return Suite(folder.resolve().name, _read(data_sets(folder)))


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
