"""From what a user types after `--benchmark` to data sets.

An embedded benchmark, one that mteb knows (`vidore-v1`, or a single task), a calibration set, or a folder of one's own;
`…#held-out` is the share of any of these that is set aside to calibrate on, `…#rest` what is left to evaluate.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.benchmarks.data_set import DataSet, read_folder
from harness.benchmarks.embedded import CALIBRATION, EMBEDDED, NAMES, BenchmarkError, data_set_folders, data_sets
from harness.benchmarks.known import CALIBRATION_SETS, COLPALI_TRAIN, selectors, superseded, task_names, training_draw

HELD_OUT, REST = "held-out", "rest"


@dataclass(frozen=True)
class Benchmark:
    """A benchmark: its data sets, and the name of the calibration set that belongs to it, if one does."""

    name: str
    data_sets: tuple[DataSet, ...]
    calibration: str | None = None
    notes: tuple[str, ...] = ()
    """What a person should know of how it came about."""

    def remarks(self) -> list[str]:
        """Notes, and how what was read differs from what is pinned: nothing of it may pass in silence."""
        differing = [f"{t.name} is not the pinned one: {what}" for t in self.data_sets for what in t.differs or ()]
        mute = [
            f"{t.name}: {t.dropped_queries} queries have no text, left out" for t in self.data_sets if t.dropped_queries
        ]
        return [*self.notes, *differing, *mute]


def load_benchmark(selector: str) -> Benchmark:
    """A benchmark by name, or the folder of one data set, or a folder of such folders."""
    found = _load(selector)
    return replace(found, data_sets=tuple(replace(each, selector=selector) for each in found.data_sets))


def _load(selector: str) -> Benchmark:
    base, mark, side = selector.rpartition("#")
    if mark and side in (HELD_OUT, REST):
        return _split(_load(base), base, side)
    if selector in NAMES:
        return Benchmark(selector, _read(data_set_folders(selector)), CALIBRATION)
    if names := task_names(selector):
        from harness.benchmarks.mteb_tasks import load_task

        parts = tuple(part for name in names for part in load_task(name))
        return Benchmark(selector, parts, COLPALI_TRAIN, tuple(superseded(names)))
    if selector in CALIBRATION_SETS or training_draw(selector) is not None:
        from harness.benchmarks.calibration_sets import load_calibration_set

        return Benchmark(selector, (load_calibration_set(selector),))
    require_known(selector)
    folder = Path(selector)
    return Benchmark(folder.resolve().name, _read(data_sets(folder)), own_calibration(folder))


def require_known(selector: str) -> None:
    """An error that names the nearest if nothing has this name and it is no folder. Nothing is loaded."""
    base, mark, side = selector.rpartition("#")
    name = base if mark and side in (HELD_OUT, REST) else selector
    known = name in (*NAMES, *CALIBRATION_SETS) or task_names(name) or training_draw(name) is not None
    if not known and not Path(name).is_dir():
        near = difflib.get_close_matches(name, [*NAMES, *selectors()], n=1)
        hint = f"did you mean {near[0]}?" if near else "`harness list benchmarks` shows them; a folder is one too"
        raise BenchmarkError(f"there is no benchmark {name!r}; {hint}")


def own_calibration(folder: Path) -> str | None:
    """The pages that a folder sets aside to calibrate on, if it does."""
    own = folder / "calibration"
    return str(own) if (own / "corpus").is_dir() else None


def with_held_out(benchmark: str, calibration: str | None) -> tuple[str, str | None]:
    """`--calibration held-out` as two benchmarks: what is left to evaluate, and what is calibrated on."""
    if calibration != HELD_OUT or benchmark.endswith(f"#{REST}"):
        return benchmark, None if calibration == HELD_OUT else calibration
    return f"{benchmark}#{REST}", None


def _split(benchmark: Benchmark, base: str, side: str) -> Benchmark:
    from harness.benchmarks.parts import HELD_OUT_SHARE, SEED, hold_out, join

    halves = [hold_out(data_set) for data_set in benchmark.data_sets]
    aside = [held for held, _ in halves]
    if side == HELD_OUT:
        return Benchmark(
            f"{benchmark.name}#{side}", (aside[0] if len(aside) == 1 else join(aside, f"{benchmark.name}-held-out"),)
        )
    pages, queries = sum(len(t.page_ids) for t in aside), sum(len(t.queries) for t in aside)
    whole = sum(len(t.page_ids) for t in benchmark.data_sets)
    note = (
        f"{pages} of {whole} pages of {benchmark.name} and their {queries} queries are "
        f"held out to calibrate on ({HELD_OUT_SHARE:.0%}, seed {SEED}); the rest is evaluated: not figures of the whole"
    )
    return Benchmark(f"{benchmark.name}#{side}", tuple(rest for _, rest in halves), f"{base}#{HELD_OUT}", (note,))


def _read(folders: Sequence[Path]) -> tuple[DataSet, ...]:
    """Data sets are named by their folder; one of an embedded benchmark also by that benchmark."""
    data_sets = []
    for folder in folders:
        data_set = read_folder(folder)
        if not data_set.page_ids or not data_set.queries:
            raise BenchmarkError(f"{folder} is empty: {len(data_set.page_ids)} pages, {len(data_set.queries)} queries")
        data_sets.append(_as_pinned(data_set, folder) if _is_embedded(folder) else data_set)
    return tuple(data_sets)


def _as_pinned(data_set: DataSet, folder: Path) -> DataSet:
    """An embedded data set, compared with the manifest beside it."""
    benchmark, name = folder.parent.name, folder.name
    pinned = json.loads((EMBEDDED / "manifest.json").read_text(encoding="utf-8"))[benchmark][name]
    wrong = [(part, found, pinned[part]) for part, found in data_set.content.items() if found != pinned[part]]
    differs = tuple(f"{part} hash to {found}, {expected} is pinned" for part, found, expected in wrong)
    return replace(data_set, name=f"{benchmark}/{name}", differs=differs)


def _is_embedded(folder: Path) -> bool:
    return folder.resolve().is_relative_to(EMBEDDED.resolve())
