"""`requirements/`: a method's author needs no retriever, and who builds the site no torch."""

import json
import subprocess
import sys
import tomllib
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.copied_tree import ROOT

BLOCKED = """
import json, runpy, sys
allowed = set(json.loads(sys.argv.pop(1)))

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed and not name.startswith("_sysconfigdata"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NotInstalled())
what = sys.argv.pop(1)
if what == "-c":
    exec(sys.argv[1])
else:
    runpy.run_module(what, run_name="__main__", alter_sys=True)
"""


def requirements(name: str) -> list[str]:
    lines = (ROOT / "requirements" / f"{name}.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


def importable(name: str) -> set[str]:
    """The top-level modules of an environment with these requirements, what they require in turn, and the project."""
    waiting, found = [Requirement(line) for line in requirements(name)], {"pruneboard"}
    while waiting:
        wanted = waiting.pop()
        key = canonicalize_name(wanted.name)
        if key in found:
            continue
        found.add(key)
        inner = map(Requirement, distribution(key).requires or [])
        waiting += [
            r for r in inner if r.marker is None or any(r.marker.evaluate({"extra": e}) for e in ("", *wanted.extras))
        ]
    modules = {
        module for module, owners in packages_distributions().items() if {*map(canonicalize_name, owners)} & found
    }
    return modules | set(sys.stdlib_module_names) | {"harness", "pruners", "leaderboard"}


def run(name: str, cwd: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, json.dumps(sorted(importable(name))), *command],
        cwd=cwd,
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["method", "site"])
def test_a_small_install_takes_part_of_the_dependencies_at_the_same_versions(name: str) -> None:
    everything = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert set(requirements(name)) < set(everything)


@pytest.mark.slow
def test_a_method_is_written_and_checked_without_a_retriever(tmp_path: Path) -> None:
    assert not {"transformers", "mteb", "colpali_engine", "pandas", "pyarrow", "datasets"} & importable("method")
    run("method", tmp_path, "harness.cli", "new-pruner", "mine")
    run("method", tmp_path, "harness.cli", "check", "mine.py", "adaptive(mine)")
    assert "mine" in run("method", tmp_path, "harness.cli", "list", "pruners", "--pruner", "mine.py", "--json")
    code = """
import torch
from pruners import catalogue, prune, resolve, synthetic_page
page = synthetic_page(8, 6)
for method in resolve(["kmeans", "agglomerative", "token_pooling", "tome", "kcenter", "voronoi", "pca_leverage"]):
    assert len(prune(method, page, budget=0.1)) == 5, method
for entry in catalogue():
    __import__("pruners").__getattr__(entry)
print("all")
"""
    assert run("method", tmp_path, "-c", code) == "all\n"


@pytest.mark.slow
def test_submissions_are_checked_and_shown_without_torch(tmp_path: Path) -> None:
    assert not {"torch", "transformers", "mteb", "datasets", "sklearn", "matplotlib"} & importable("site")
    run("site", tmp_path, "harness.cli", "validate", str(ROOT / "submissions"))
    run("site", tmp_path, "harness.cli", "leaderboard", "--submissions", str(ROOT / "submissions"), "--out", "site")
    assert (tmp_path / "site" / "index.html").is_file()


def test_what_is_not_allowed_is_not_imported(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="No module named 'pandas'"):
        run("method", tmp_path, "-c", "import pandas")
