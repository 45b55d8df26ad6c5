"""`harness bench board`: what commands take is counted rightly, and both are run on what was made up."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.bench.board import measure, memory
from harness.progress import quiet

FORKED = """
import os, sys, time
held = bytearray(os.urandom(1)) * (100 * 2**20)
child = os.fork()
if child:
    print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="no /proc here")
def test_memory_that_processes_share_is_counted_once() -> None:
    with subprocess.Popen([sys.executable, "-c", FORKED], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = memory(process.pid)
        process.communicate()
    assert 100 * 2**20 < found < 150 * 2**20
    assert memory(process.pid) == 0


@pytest.mark.slow
def test_a_few_made_up_submissions_are_validated_and_built(tmp_path: Path) -> None:
    rows = measure(tmp_path / "bench", 3, quiet)
    assert [row["what"] for row in rows] == ["validate", "leaderboard", "both"]
    assert rows[2]["cpu"] == pytest.approx(rows[0]["cpu"] + rows[1]["cpu"], abs=0.11)
    assert rows[1]["files"] > 3
