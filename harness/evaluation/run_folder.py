"""A run on disk. Every file is whole or absent, so a run that was killed goes on where it was.

config.toml            the frozen configuration; `harness evaluate --config` takes it
environment.json       versions, hardware, state of the code
calibration.json       windows and thresholds that were learned
stores.json            key and content hashes of every data set that was read
results/<data set>/<method>.json, .parquet      summary by budget and what made it; one row a query, budget, trial
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
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from harness import parquet
from harness.evaluation.config import Config, write_config
from harness.evaluation.results import Result
from harness.files import library_versions, write_atomically
from harness.metrics.results_table import HEADLINE, KEYS, ResultsTable
from pruners.core.errors import PruneBoardError

LIBRARIES = (
    *("pruneboard", "torch", "transformers", "colpali-engine", "mteb", "numpy", "numba", "scipy", "scikit-learn"),
    *("pytrec-eval-terrier", "pandas"),
)


KEPT = ".kept.parquet"
KEPT_FORM = {"budget": "number", "trial": "integer", "kept": "integers"}


class RunFolder:
    """Reads and writes one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def begin(cls, folder: Path, config: Config) -> RunFolder:
        """The folder of this configuration, new or as a killed run left it."""
        run = cls(folder)
        text, path = write_config(config), folder / "config.toml"
        if path.exists() and path.read_bytes() != text:
            raise PruneBoardError(f"{folder} holds a run of another configuration; choose another --out")
        (folder / "results").mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
        run.write_json("environment.json", environment())
        return run

    def write_json(self, name: str, value: Any) -> None:
        write_atomically(self.folder / name, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())

    def write_bytes(self, name: str, data: bytes) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.folder / name, data)

    def read_json(self, name: str) -> Any:
        path = self.folder / name
        return json.loads(path.read_text()) if path.exists() else None

    def has(self, data_set: str, slug: str) -> bool:
        return self._path(data_set, slug, ".json").exists()

    def forget(self, data_set: str, slug: str) -> None:
        """Take a result out of the run. The JSON file goes first: without it there is no result."""
        for ending in (".json", ".parquet", KEPT):
            self._path(data_set, slug, ending).unlink(missing_ok=True)

    def read_made_by(self, data_set: str, slug: str) -> dict[str, str] | None:
        """What made a result; None if a release did that left no note of it, or if it cannot be read."""
        try:
            found = json.loads(self._path(data_set, slug, ".json").read_text(encoding="utf-8"))
        except ValueError:
            return None
        return found.get("made_by") if isinstance(found, dict) and isinstance(found.get("made_by"), dict) else None

    def write_result(self, slug: str, result: Result, made_by: Mapping[str, str]) -> None:
        """The JSON file goes last: where it is, the result is whole."""
        rows = io.BytesIO()
        pq.write_table(result.rows, rows)
        path = self._path(result.data_set, slug, ".parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, rows.getvalue())
        budgets = [entry["budget"] for entry in result.summary]
        write_atomically(path.with_suffix(KEPT), kept_table(budgets, result.kept))
        record = {
            "data_set": result.data_set,
            "method": result.method,
            "made_by": dict(made_by),
            "budgets": result.summary,
        }
        self.write_json(str(self._path(result.data_set, slug, ".json").relative_to(self.folder)), record)

    def read_result(self, data_set: str, slug: str) -> Result:
        record = json.loads(self._path(data_set, slug, ".json").read_text())
        with pq.ParquetFile(self._path(data_set, slug, ".parquet")) as file:
            rows = file.read()
        kept = read_kept(self._path(data_set, slug, KEPT), len(record["budgets"]))
        return Result(record["data_set"], record["method"], record["budgets"], rows, kept, record.get("made_by") or {})

    def read_summary(self, data_set: str, slug: str) -> list[dict]:
        """A result's figures that are no query's: one entry a budget."""
        return json.loads(self._path(data_set, slug, ".json").read_text())["budgets"]

    def read_table(self, data_sets: Sequence[str], slug: str, measures: Sequence[str] = (HEADLINE,)) -> ResultsTable:
        """Measures of every query. Ranked pages are most of a result, and most of the time: they are not unpacked."""
        found = {}
        for data_set in data_sets:
            with pq.ParquetFile(self._path(data_set, slug, ".parquet")) as file:
                found[data_set] = file.read([*KEYS, *measures], use_threads=False)
        return ResultsTable.of(found)

    def add_timings(self, data_set: str, milliseconds: Mapping[str, float]) -> None:
        known = self.read_json("timings.json") or {}
        self.write_json("timings.json", {**known, data_set: {**known.get(data_set, {}), **milliseconds}})

    def log(self, line: str) -> None:
        with (self.folder / "log.txt").open("a", encoding="utf-8") as file:
            file.write(f"{datetime.now(UTC).isoformat(timespec='seconds')} {line}\n")

    def _path(self, data_set: str, slug: str, ending: str) -> Path:
        folder = data_set.replace("/", "--")
        if folder in (".", "..") or slug in (".", ".."):
            raise PruneBoardError(f"{data_set!r} and {slug!r} cannot name files")
        return self.folder / "results" / folder / f"{slug}{ending}"


def kept_table(budgets: Sequence[float], kept: np.ndarray) -> bytes:
    """`kept [trials, budgets, pages]` as a table with a row for each budget and trial."""
    trials = len(kept)
    columns = {
        "budget": [budget for budget in budgets for _ in range(trials)],
        "trial": list(range(trials)) * len(budgets),
        "kept": list(kept.transpose(1, 0, 2).reshape(trials * len(budgets), -1)),
    }
    return parquet.pack(columns, KEPT_FORM)


def read_kept(path: Path, budgets: int) -> np.ndarray:
    rows = np.array(parquet.read(path, KEPT_FORM)["kept"].to_pylist(), np.int64)
    return rows.reshape(budgets, len(rows) // budgets, -1).transpose(1, 0, 2)


def environment() -> dict[str, Any]:
    """Where a run was made: nothing of it changes a number."""
    return {
        "python": sys.version.split()[0],
        "platform": f"{platform.system()}, {os.cpu_count()} cores",
        "processor": platform.machine(),
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
