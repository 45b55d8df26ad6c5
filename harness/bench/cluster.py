"""`harness bench cluster`: encoding and evaluating on Ray with one node and with two, and with a node that is killed.

Nodes have one core each and are processes of this machine. Commands run as a user types them, each with a store and a
run folder of its own, and everything that they write is compared with what one process writes, byte by byte.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from harness.files import file_checksum
from harness.progress import Progress
from pruners.core.errors import PruneBoardError

COLUMNS = {
    "what": "",
    "runs": "runs",
    "encode": "encode, s",
    "evaluate": "evaluate, s",
    "seconds": "both, s",
    "ratio": "x one node",
    "same": "the same bytes",
}
NODE = {"num_cpus": 1, "object_store_memory": 100 * 2**20, "include_dashboard": False}
TIMES = ("timings.json", "log.txt", "environment.json", "checksums.txt")
"""Files of a run that hold times, or checksums of those that do."""
SEED = 0
"""Of the moments at which nodes are killed."""


def measure(options: Sequence[str], kills: int, progress: Progress) -> list[dict[str, Any]]:
    """A row for one process, one node, two nodes, and two nodes of which one is killed at a random moment."""
    import harness.engine.ray  # noqa: F401 (what it asks of Ray is read when nodes start)

    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch, progress("clusters", total=3 + kills, done=0) as advance:
        work = _Work(Path(scratch), list(options))
        rows.append({"what": "one process", "runs": 1, **work.run("alone", [])})
        expected = rows[0].pop("files")
        advance(1)
        for nodes, what in enumerate(("Ray, one node of a core", "Ray, two nodes"), start=1):
            with _cluster(nodes) as cluster:
                row = {"what": what, "runs": 1, **work.run(f"nodes-{nodes}", _on(cluster))}
            rows.append(row | {"same": _same(expected, row.pop("files"))})
            advance(1)
        moments = random.Random(SEED)
        killed = []
        for i in range(kills):
            with _cluster(2) as cluster:
                after = moments.uniform(0, rows[-1]["seconds"])
                killed.append(work.run(f"killed-{i}", _on(cluster), _Kill(cluster, after)))
            advance(1)
        if killed:
            means = {name: sum(row[name] for row in killed) / kills for name in ("encode", "evaluate", "seconds")}
            same = sum(row["files"] == expected for row in killed)
            rows.append({"what": "Ray, two nodes, one killed", "runs": kills, **means, "same": f"{same} of {kills}"})
    one_node = rows[1]["seconds"]
    for row in rows:
        row["ratio"] = round(row["seconds"] / one_node, 2)
        row |= {name: round(row[name], 1) for name in ("encode", "evaluate", "seconds")}
    return rows


def _same(expected: dict[str, str], found: dict[str, str]) -> str:
    if found == expected:
        return f"{len(found)} files"
    names = [name for name in sorted({*expected, *found}) if expected.get(name) != found.get(name)]
    return f"{len(names)} differ, first {names[0]}"


def written(folder: Path) -> dict[str, str]:
    """Checksums of all files, by name, but those that hold times."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name not in TIMES and p.suffix != ".lock")
    return {str(path.relative_to(folder)): file_checksum(path) for path in files}


@contextmanager
def _cluster(nodes: int) -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    made: Any = Cluster(initialize_head=True, head_node_args=NODE)
    try:
        made.others = [made.add_node(**NODE) for _ in range(nodes - 1)]
        yield made
    finally:
        made.shutdown()


def _on(cluster: Any) -> list[str]:
    return ["--engine", "ray", "--ray-address", cluster.address]


class _Kill:
    """Kills the second node, some time after it is begun."""

    def __init__(self, cluster: Any, after: float) -> None:
        self.thread = threading.Timer(after, lambda: cluster.remove_node(cluster.others[0], allow_graceful=False))

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *ended: object) -> None:
        self.thread.join()  # a cluster is not taken down while a node of it is


class _Work:
    """`harness encode`, then `harness evaluate`, into folders of their own."""

    def __init__(self, scratch: Path, options: list[str]) -> None:
        self.scratch, self.options = scratch, options

    def run(self, name: str, where: list[str], beside: Any = None) -> dict[str, Any]:
        folder = self.scratch / name
        stores, run = ["--store", str(folder / "stores")], ["--out", str(folder / "run"), "--json"]
        backbone = self._told("--backbone", "nano")
        with beside or nullcontext():
            encode = _timed(["encode", *backbone, *self._told("--benchmark", "minidocs"), *stores, *where])
            evaluate = _timed(["evaluate", *self.options, *stores, *run, *(where or ["--workers", "1"])])
        return {"encode": encode, "evaluate": evaluate, "seconds": encode + evaluate, "files": written(folder)}

    def _told(self, option: str, default: str) -> list[str]:
        """An option of the evaluation that encoding has too."""
        known = dict(zip(self.options, self.options[1:], strict=False))
        return [option, known.get(option, default)]


def _timed(words: list[str]) -> float:
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "harness.cli", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise PruneBoardError(f"`harness {' '.join(words)}` failed: {done.stderr.strip()[-500:]}")
    return time.perf_counter() - begun
