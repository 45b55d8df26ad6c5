"""`harness bench board`: how long a folder of many submissions takes to validate and to become a site.

Submissions are made up, valid, pinned and written to disk as `harness submit` would: their rankings agree with their
figures, so that everything is computed again. Boards have a hundred methods each. `validate` and `leaderboard` run as
commands of their own, as a maintainer would type them, with an empty cache.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from harness.benchmarks.content import qrels_hash
from harness.benchmarks.data_set import DataSet
from harness.benchmarks.tables import pages_table, qrels_table
from harness.files import checksum
from harness.metrics.ranking import CUTOFFS, TOP
from harness.progress import Progress
from harness.submissions.folder import BENCHMARK, submission_path, to_json
from harness.submissions.pins import pin
from harness.submissions.schema import BenchmarkFacts, Submission, with_id
from harness.submissions.tables import kept_path, pack_kept, pack_per_query, per_query_path
from pruners.core.budget import keep_count
from pruners.core.errors import PruneBoardError

COLUMNS = {
    "what": "",
    "submissions": "submissions",
    "seconds": "s",
    "cpu": "CPU s",
    "peak_mb": "all processes, MB",
    "files": "files",
    "largest_kb": "largest, KB",
}
BUDGETS = (0.05, 0.1, 0.2, 1.0)
DATA_SETS, PAGES_EACH, QUERIES_EACH, VECTORS, DIM = 4, 40, 25, 196, 128
BENCHMARKS, METHODS = 8, 100
DAY = "2026-11-16"
EVERY = 0.5
"""Seconds between two looks at the memory."""


@dataclass(frozen=True)
class MadeUpTables:
    """The tables of one made-up method, and the cells that follow from them."""

    per_query: bytes
    kept: bytes
    cells: tuple[dict[str, Any], ...]


def measure(folder: Path, submissions: int, progress: Progress) -> list[dict[str, Any]]:
    """A row for `harness validate` and one for `harness leaderboard`, over so many made-up submissions."""
    if folder.exists():
        raise PruneBoardError(f"{folder} is there already; choose another --folder, or remove it")
    root, site = folder / "submissions", folder / "site"
    write_submissions(root, submissions, progress)
    env = {"XDG_CACHE_HOME": str(folder / "cache")}
    checked = _run(["validate", str(root), "--json"], env)
    built = _run(["leaderboard", "--submissions", str(root), "--out", str(site), "--json"], env)
    if checked["said"]["statuses"] != {"recomputed": submissions} or built["said"]["submissions"] != submissions:
        raise PruneBoardError(f"some submissions are not on the board: {checked['said']['statuses']}, {built['said']}")
    sizes = [path.stat().st_size for path in site.rglob("*") if path.is_file()]
    built |= {"files": len(sizes), "largest_kb": round(max(sizes) / 1000)}
    rows = [
        {"what": what, "submissions": submissions, **row}
        for what, row in (("validate", checked), ("leaderboard", built))
    ]
    both = {"what": "both", "submissions": submissions}
    both |= {name: round(sum(row[name] for row in rows), 1) for name in ("seconds", "cpu")}
    return [{k: v for k, v in row.items() if k != "said"} for row in (*rows, both)]


def _run(words: list[str], env: dict[str, str]) -> dict[str, Any]:
    """What a command said, and what it took with the processes that it started."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as complained:
        command = [sys.executable, "-m", "harness.cli", *words]
        process = subprocess.Popen(command, stdout=said, stderr=complained, env={**os.environ, **env})
        peak = 0
        while process.poll() is None:
            peak = max(peak, memory(process.pid))
            time.sleep(EVERY)
        seconds = time.perf_counter() - start
        said.seek(0)
        complained.seek(0)
        if process.returncode:
            raise PruneBoardError(f"`harness {words[0]}` failed: {complained.read().strip()[-500:]}")
        answer = json.load(said)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
    return {
        "said": answer,
        "seconds": round(seconds, 1),
        "cpu": round(cpu, 1),
        "peak_mb": round(peak / 2**20) or None,
    }


def memory(pid: int) -> int:
    """Bytes of a process and of all that it started, what they share counted once. 0 where there is no /proc."""
    found = 0
    with suppress(OSError):  # it has ended since
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            found += int(line.split()[1]) * 1024 if line.startswith("Pss:") else 0
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += sum(memory(int(child)) for child in (task / "children").read_text().split())
    return found


def write_submissions(root: Path, count: int, progress: Progress, methods: int = METHODS) -> None:
    """A folder of made-up submissions, `methods` a board, over a few benchmarks and as many backbones as it takes."""
    qrels = {f"d{d}": {f"q{q:03d}": {f"p{q:03d}": 1} for q in range(QUERIES_EACH)} for d in range(DATA_SETS)}
    tables = [made_up_tables(i, methods) for i in range(min(methods, count))]
    with progress("made-up submissions", total=count, done=0) as advance:
        for i in range(count):
            board, method = divmod(i, methods)
            backbone, benchmark = divmod(board, BENCHMARKS)
            if backbone == method == 0:
                _write_benchmark(root / _benchmark(benchmark), qrels)
            path = _write(
                root, _facts(_benchmark(benchmark), qrels), f"backbone-{backbone:03d}", method, tables[method]
            )
            if method == 0:
                pin(root, path, "the bench", date.fromisoformat(DAY))
            advance(1)


def made_up_tables(number: int, of: int) -> MadeUpTables:
    """Rankings of a method that finds less the smaller the budget, and every figure that follows from them."""
    drawn, frames, cells, kept = np.random.default_rng([3, number]), [], [], []
    quality = 0.48 + 0.5 * number / of  # the first is `random`
    for d in range(DATA_SETS):
        for budget in BUDGETS:
            chance = 0.99 if budget == 1 else quality * (0.4 + 0.6 * budget**0.3)
            rng = np.random.default_rng([1, d]) if budget == 1 else drawn  # one full model for all
            rank = np.minimum(rng.geometric(chance, QUERIES_EACH) - 1, TOP)  # TOP: not among the first ten
            top = [_ranking(rng, q, r) for q, r in enumerate(rank)]
            frame = pd.DataFrame({"data_set": f"d{d}", "language": "", "budget": budget, "trial": 0,
                                  "query": [f"q{q:03d}" for q in range(QUERIES_EACH)]})  # fmt: skip
            for k in CUTOFFS:
                frame[f"ndcg@{k}"] = np.where(rank < min(k, TOP), 1 / np.log2(rank + 2), 0.0)
            frame["score_retention"] = np.float32(1.0 if budget == 1 else 0.5 + quality / 4)
            frames.append(frame.assign(top_10=top))
            keep = keep_count(budget, VECTORS)
            kept.append((f"d{d}", budget, 0, np.full(PAGES_EACH, keep)))
            cells.append(_cell(frame, budget, keep))
    return MadeUpTables(pack_per_query(pd.concat(frames)), pack_kept(kept), tuple(cells))


def _ranking(rng: np.random.Generator, query: int, rank: int) -> list[str]:
    """Ten pages, the query's own at its rank."""
    others = [page for page in rng.permutation(PAGES_EACH)[: TOP + 1].tolist() if page != query][:TOP]
    if rank < TOP:
        others[rank] = query
    return [f"p{page:03d}" for page in others]


def _cell(frame: pd.DataFrame, budget: float, keep: int) -> dict[str, Any]:
    retained = float(frame["score_retention"].iloc[0])
    return {
        "data_set": frame["data_set"].iloc[0],
        "budget": budget,
        "realised": keep / VECTORS,
        "vectors_per_page": float(keep),
        "bytes_per_page": float(keep * DIM * 2),
        "prune_ms": None if budget == 1 else 1.5,
        "ndcg": {str(k): float(frame[f"ndcg@{k}"].mean()) for k in CUTOFFS},
        "score_retention": retained,
        "score_retention_micro": retained,
    }


def _benchmark(number: int) -> str:
    return f"made-up-{number}"


def _facts(name: str, qrels: dict[str, dict[str, dict[str, int]]]) -> dict[str, Any]:
    some = "sha256-" + "0" * 64
    sets = [
        {"name": d, "pages": PAGES_EACH, "queries": len(found), "corpus": some, "query_texts": some,
         "qrels": qrels_hash(found)}
        for d, found in qrels.items()
    ]  # fmt: skip
    return {"name": name, "data_sets": sets}


def _write_benchmark(home: Path, qrels: dict[str, dict[str, dict[str, int]]]) -> None:
    home.mkdir(parents=True)
    facts = BenchmarkFacts.model_validate_json(json.dumps(_facts(home.name, qrels)))
    (home / BENCHMARK).write_bytes(to_json(facts))
    names, no_image = tuple(f"p{page:03d}" for page in range(PAGES_EACH)), cast(Any, None)
    sets = [DataSet(d, names, no_image, dict.fromkeys(found, ""), found) for d, found in qrels.items()]
    (home / "pages.parquet").write_bytes(pages_table(sets))
    (home / "qrels.parquet").write_bytes(qrels_table(sets))


def _write(root: Path, benchmark: dict[str, Any], backbone: str, number: int, tables: MadeUpTables) -> Path:
    name = "random" if number == 0 else f"method-{number:03d}"
    record = {
        "format": 1,
        "id": "none-yet",
        "claim": "self-reported",
        "origin": {"submitter": "the bench", "submitted": DAY, "code": "https://example.org/code"},
        "benchmark": benchmark,
        "backbone": {"name": backbone, "checkpoint": f"made-up/{backbone}", "profile": "visual", "dim": DIM},
        "method": {"name": name, "expression": name, "title": name, "track": "query-agnostic subset"},
        "cells": tables.cells,
        "environment": {"python": "3.11", "platform": "Linux", "libraries": {}, "code": "none"},
        "per_query": checksum(tables.per_query),
        "kept": checksum(tables.kept),
    }  # fmt: skip
    submission = with_id(Submission.model_validate_json(json.dumps(record)))
    path = root / submission_path(submission)
    path.parent.mkdir(parents=True)
    path.write_bytes(to_json(submission))
    per_query_path(path).write_bytes(tables.per_query)
    kept_path(path).write_bytes(tables.kept)
    return path
