"""What `harness bench cluster` says of its runs: ratios, which files differ, and that a node is really killed.

Commands and clusters are stand-ins here; tests/harness/engine/test_ray.py runs the real ones.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.bench import cluster
from harness.progress import quiet


class StandIn:
    """Commands that write a file each and take as long as their cluster is said to."""

    def __init__(self) -> None:
        self.killed: list[str] = []
        self.clusters = 0
        self.commands: list[list[str]] = []
        self.spoil = ""

    def run(self, words: list[str]) -> float:
        self.commands.append(words)
        place = Path(words[words.index("--out" if "--out" in words else "--store") + 1])
        place.mkdir(parents=True)
        (place / f"{words[0]}.json").write_text("other" if self.spoil and self.spoil in str(place) else "same")
        (place / "timings.json").write_text(str(len(self.commands)))
        return 0.02 if "nodes-1" in str(place) else 0.01

    @contextmanager
    def cluster(self, nodes: int):
        self.clusters += 1
        name = f"cluster {self.clusters}"

        class Nodes:
            address = name
            others = ["second"] * (nodes - 1)
            remove_node = staticmethod(lambda node, allow_graceful: self.killed.append(f"{node} of {name}"))

        yield Nodes


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    made = StandIn()
    monkeypatch.setattr(cluster, "_timed", made.run)
    monkeypatch.setattr(cluster, "_cluster", made.cluster)
    return made


def measured(kills: int) -> list[dict[str, Any]]:
    return cluster.measure(["--backbone", "toy", "--budgets", "0.1"], kills, quiet)


def test_times_are_beside_one_nodes_and_files_with_times_are_not_compared(stand_in: StandIn) -> None:
    alone, one, two = measured(kills=0)
    assert [row["ratio"] for row in (alone, one, two)] == [0.5, 1.0, 0.5]
    assert one["same"] == two["same"] == "2 files"
    encode, evaluate = stand_in.commands[:2]
    assert encode[:5] == ["encode", "--backbone", "toy", "--benchmark", "minidocs"]
    assert evaluate[:5] == ["evaluate", "--backbone", "toy", "--budgets", "0.1"]
    assert "--workers" in evaluate
    assert stand_in.commands[-1][-4:] == ["--engine", "ray", "--ray-address", "cluster 2"]


def test_a_file_that_differs_is_named(stand_in: StandIn) -> None:
    stand_in.spoil = "nodes-2/run"
    assert measured(kills=0)[2]["same"] == "1 differ, first run/evaluate.json"


def test_a_node_of_every_cluster_is_killed_and_what_differs_is_counted(stand_in: StandIn) -> None:
    stand_in.spoil = "killed-1/stores"
    row = measured(kills=3)[-1]
    assert stand_in.killed == [f"second of cluster {i}" for i in (3, 4, 5)]
    assert (row["runs"], row["same"]) == (3, "2 of 3")
