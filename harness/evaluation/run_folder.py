"""A run on disk. Every file is whole or absent, so a run that was killed goes on where it was.

config.toml            the frozen configuration; `harness evaluate --config` takes it
environment.json       versions, hardware, state of the code
calibration.json       windows and thresholds that were learned
stores.json            key and content hashes of every data set that was read
results/<data set>/<method>.json, .parquet      summary by budget and what made it; one row a query, budget, trial
results/<data set>/.scoring                     what was counted so far; gone when the data set is done
failures.json          methods without results, and why
timings.json           pruning milliseconds a page: the one file that differs between equal runs
log.txt
"""

from __future__ import annotations

import io
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from harness import parquet
from harness.checked_folder import CheckedFolder, DamagedError
from harness.evaluation.config import Config, write_config
from harness.evaluation.kept_counts import KeptRows
from harness.evaluation.results import Result
from harness.evaluation.scoring_state import ScoringState
from harness.files import library_versions
from harness.instructions import processor
from harness.memory import give_back
from harness.metrics.results_table import HEADLINE, KEYS, ResultsTable
from pruners.core.errors import PruneBoardError

LIBRARIES = (
    *("pruneboard", "torch", "transformers", "colpali-engine", "mteb", "numpy", "numba", "scipy", "scikit-learn"),
    *("pytrec-eval-terrier", "pandas"),
)


KEPT = ".kept.parquet"
SCORING = ".scoring"
PACKED = 2**20
"""Counts of kept vectors that are read and packed at once: packing takes about twenty bytes for each."""
KEPT_FORM = {"budget": "number", "trial": "integer", "kept": "integers"}


class RunFolder:
    """Reads and writes one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files = CheckedFolder(
            folder, "Delete it and run the same `harness evaluate` again, which measures it anew"
        )

    def one_writer(self) -> AbstractContextManager[None]:
        """Nobody else writes this run while the block runs."""
        return self._files.one_writer()

    @classmethod
    def begin(cls, folder: Path, config: Config) -> RunFolder:
        """The folder of this configuration, new or as a killed run left it."""
        run = cls(folder)
        text, path = write_config(config), folder / "config.toml"
        if path.exists() and path.read_bytes() != text:
            raise PruneBoardError(f"{folder} holds a run of another configuration; choose another --out")
        (folder / "results").mkdir(parents=True, exist_ok=True)
        run.write_bytes("config.toml", text)
        run.write_json("environment.json", environment())
        return run

    def write_bytes(self, name: str, data: bytes) -> None:
        self._files.write(name, data)

    def write_json(self, name: str, value: Any) -> None:
        self.write_bytes(name, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())

    def read_bytes(self, name: str) -> bytes | None:
        """A file as it was written; None if it is not there, or if a release wrote it that noted no checksums."""
        return self._files.read(name) if self._files.has(name) else None

    def read_json(self, name: str) -> Any:
        data = self.read_bytes(name)
        return None if data is None else json.loads(data)

    def has(self, data_set: str, slug: str) -> bool:
        return self._files.has(_name(data_set, slug, ".json"))

    def forget(self, data_set: str, slug: str) -> None:
        """Take a result out of the run. The JSON file goes first: without it there is no result."""
        for ending in (".json", ".parquet", KEPT):
            self._files.remove(_name(data_set, slug, ending))

    def read_made_by(self, data_set: str, slug: str) -> dict[str, str] | None:
        """What made a result; None if that cannot be read, so that it is measured again."""
        try:
            for ending in (".parquet", KEPT):
                self._files.read(_name(data_set, slug, ending))
            return self.read_json(_name(data_set, slug, ".json")).get("made_by")
        except (DamagedError, OSError):
            return None

    def write_result(self, slug: str, result: Result, made_by: Mapping[str, str]) -> None:
        """The JSON file goes last: where it is, the result is whole."""
        rows = io.BytesIO()
        pq.write_table(result.rows, rows)
        self.write_bytes(_name(result.data_set, slug, ".parquet"), rows.getvalue())
        budgets = [entry["budget"] for entry in result.summary]
        self.write_bytes(_name(result.data_set, slug, KEPT), kept_table(budgets, result.kept))
        record = {
            "data_set": result.data_set,
            "method": result.method,
            "made_by": dict(made_by),
            "budgets": result.summary,
        }
        self.write_json(_name(result.data_set, slug, ".json"), record)

    def read_result(self, data_set: str, slug: str) -> Result:
        record = self.read_json(_name(data_set, slug, ".json"))
        kept = read_kept(self._files.read(_name(data_set, slug, KEPT)), len(record["budgets"]))
        return Result(
            record["data_set"], record["method"], record["budgets"], self._rows(data_set, slug), kept, record["made_by"]
        )

    def read_summary(self, data_set: str, slug: str) -> list[dict]:
        """A result's figures that are no query's: one entry a budget."""
        return self.read_json(_name(data_set, slug, ".json"))["budgets"]

    def read_table(self, data_sets: Sequence[str], slug: str, measures: Sequence[str] = (HEADLINE,)) -> ResultsTable:
        """Measures of every query. Ranked pages are most of a result, and most of the time: they are not unpacked."""
        return ResultsTable.of({name: self._rows(name, slug, [*KEYS, *measures]) for name in data_sets})

    def _rows(self, data_set: str, slug: str, columns: list[str] | None = None) -> pa.Table:
        with pq.ParquetFile(io.BytesIO(self._files.read(_name(data_set, slug, ".parquet")))) as file:
            return file.read(columns, use_threads=False)

    def scoring_state(self, data_set: str, key: str = "") -> ScoringState:
        """Of a data set that is being scored. `key` is what its counts depend on, for those who read or write it."""
        return ScoringState(self.folder / _name(data_set, SCORING, ""), key)

    def add_timings(self, data_set: str, milliseconds: Mapping[str, float]) -> None:
        known = self.read_json("timings.json") or {}
        self.write_json("timings.json", {**known, data_set: {**known.get(data_set, {}), **milliseconds}})

    def log(self, line: str) -> None:
        with (self.folder / "log.txt").open("a", encoding="utf-8") as file:
            file.write(f"{datetime.now(UTC).isoformat(timespec='seconds')} {line}\n")


def _name(data_set: str, slug: str, ending: str) -> str:
    folder = data_set.replace("/", "--")
    if folder in (".", "..") or slug in (".", "..") or "/" in slug:
        raise PruneBoardError(f"{data_set!r} and {slug!r} cannot name files")
    return f"results/{folder}/{slug}{ending}"


def kept_table(budgets: Sequence[float], kept: np.ndarray | KeptRows) -> bytes:
    """`kept [trials, budgets, pages]` as a table with a row for each budget and trial."""
    return parquet.pack_groups(_kept_groups(budgets, kept), KEPT_FORM)


def _kept_groups(budgets: Sequence[float], kept: np.ndarray | KeptRows) -> Iterator[dict[str, Any]]:
    """Rows of the table, as many at once as may be in memory."""
    trials, _, pages = kept.shape
    cells = [(trial, b) for b in range(len(budgets)) for trial in range(trials)]
    together = max(1, PACKED // max(1, pages))
    for some in (cells[at : at + together] for at in range(0, len(cells), together)):
        give_back()  # what scoring had, or packing the rows before
        yield {
            "budget": [budgets[b] for _, b in some],
            "trial": [trial for trial, _ in some],
            "kept": _kept_lists(kept, some),
        }


def _kept_lists(kept: np.ndarray | KeptRows, cells: Sequence[tuple[int, int]]) -> pa.ListArray:
    """A list of all pages' counts for each cell."""
    rows = kept.rows(cells) if isinstance(kept, KeptRows) else np.stack([kept[cell] for cell in cells])
    ends = pa.array(np.arange(len(cells) + 1) * rows.shape[1], pa.int32())
    return pa.ListArray.from_arrays(ends, np.ascontiguousarray(rows, np.int32).ravel())


def read_kept(data: bytes, budgets: int) -> np.ndarray:
    with pq.ParquetFile(io.BytesIO(data)) as file:
        rows = file.read(["kept"], use_threads=False)["kept"].combine_chunks()
    counts = rows.flatten().to_numpy().astype(np.int64)
    return counts.reshape(budgets, len(rows) // budgets, -1).transpose(1, 0, 2)


def environment() -> dict[str, Any]:
    """Where a run was made: another processor, or another version of a library, may round a last digit otherwise."""
    return {
        "python": sys.version.split()[0],
        "platform": f"{platform.system()}, {os.cpu_count()} cores",
        "processor": processor(),
        "libraries": library_versions(LIBRARIES),
        "code": _git_state(),
    }


def _git_state() -> str:
    """The commit, with `+changes` if the tree differs from it; `not a checkout` for an installed package."""
    here = Path(__file__).parent
    try:
        commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=here, stderr=subprocess.DEVNULL, text=True)
        changes = subprocess.check_output(["git", "status", "--porcelain"], cwd=here, text=True)
    except (OSError, subprocess.CalledProcessError):
        return "not a checkout"
    return commit.strip() + ("+changes" if changes.strip() else "")
