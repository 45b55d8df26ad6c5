"""Loops compiled beside the encoding: an evaluation then finds all of them on disk."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMPILE = """
from harness.evaluation.compile import compile_loops
from harness.evaluation.methods import choose_methods
compile_loops(choose_methods([], None), (0.05, 0.1, 0.2))
"""
EVALUATE = """
import sys
from numba.core import event
heard = event.RecordingListener()
event.register("numba:compile", heard)
from harness import cli
status = cli.run()
started = [told.data["dispatcher"].py_func for _, told in heard.buffer if told.is_start]
print("compiled:", sorted({f"{function.__module__}.{function.__name__}" for function in started}))
sys.exit(status)
"""


@pytest.mark.slow
def test_an_evaluation_has_nothing_left_to_compile(toy, tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "compiled")}

    def run(script: str, *arguments: str) -> str:
        command = [sys.executable, "-c", script, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(COMPILE)
    places = ["--out", str(tmp_path / "run"), "--store", str(tmp_path / "stores"), "--workers", "1", "--quiet"]
    assert "compiled: []" in run(EVALUATE, "evaluate", *toy.options, *places)
