"""CONTRIBUTING.md, followed to the letter in a copy of the tree: a new method is one file and its test."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.copied_tree import ROOT, copy_tree

LEFT_OUT = ("git clone", "make test")  # this is a clone with everything installed, and these are its tests
NEW = ["pruners/my_method.py", "tests/pruners/test_my_method.py"]
BUILD_A_SITE = """
from pathlib import Path
from leaderboard.gather import Gathered
from leaderboard.site import build
from tests.leaderboard.synthetic import entry, measured
build(Gathered([entry(*measured("my_method", 0.9, 1)), entry(*measured("sap", 0.8, 2))]), Path("runs/site"))
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree in which `make` finds everything installed."""
    tree = copy_tree(tmp_path_factory.mktemp("clone"))
    bin_ = tree / ".venv" / "bin"
    bin_.mkdir(parents=True)
    modules = {"python": "", "harness": "-m harness.cli", "pytest": "-m pytest", "ruff": "-m ruff", "mypy": "-m mypy"}
    modules["lint-imports"] = '-c "from importlinter.cli import lint_imports_command as run; run()"'
    for name, module in modules.items():
        (bin_ / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        (bin_ / name).chmod(0o755)
    (bin_ / "activate").write_text(f'export PATH="{bin_}:$PATH" PYTHONPATH="{tree}"\n')
    (tree / ".venv" / "installed-dev").touch()
    if (ROOT / ".mypy_cache").is_dir():  # saves a minute of reading torch
        shutil.copytree(ROOT / ".mypy_cache", tree / ".mypy_cache")
    git(tree, "init", "--quiet")
    git(tree, "add", "--all")
    git(tree, "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "--quiet", "--message", "a clone")
    return tree


def git(tree: Path, *args: str) -> str:
    return subprocess.check_output(["git", *args], cwd=tree, text=True)


def bash(tree: Path, script: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    done = subprocess.run(["bash", "-ec", script], cwd=tree, text=True, capture_output=True, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_commands_of_contributing_make_a_method_that_is_merged_as_one_file_and_its_test(clone: Path) -> None:
    block = re.search(r"```\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    assert block is not None
    commands = [line for line in block[1].splitlines() if not line.startswith(LEFT_OUT)]
    assert [line.split()[0] for line in commands] == ["source", "harness", "harness", "pytest", "make"]
    bash(clone, "\n".join(commands))
    assert git(clone, "status", "--porcelain", "--untracked-files=all").split()[1::2] == NEW

    activate = commands[0] + "\n"
    rows = json.loads(bash(clone, activate + "harness list pruners --json"))
    (row,) = [row for row in rows if row["name"] == "my_method"]
    assert row["source"] == "built-in"
    # what `make test` asks of every method, and of the documents that show them
    bash(clone, activate + "pytest tests/pruners -k 'my_method or catalogue or listed'")
    bash(clone, activate + "pytest tests/leaderboard/test_pages.py -k 'words_and_a_formula'")
    bash(clone, activate + f"python -c '{BUILD_A_SITE}'")
    page = (clone / "runs" / "site" / "method" / "my_method.html").read_text()
    assert "<p>One line for `harness list pruners`." in page
    assert "s<sub>j</sub> = ‖e<sub>j</sub> − mean(E)‖" in page


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["scorer", "reducer"])
def test_the_test_of_a_new_method_passes_beside_it_and_when_moved(clone: Path, kind: str) -> None:
    method, activate = f"a_{kind}", "source .venv/bin/activate\n"
    bash(clone, activate + f"harness new-pruner {method} --kind {kind} --dir pruners\npytest pruners/test_{method}.py")
    bash(clone, activate + f"mv pruners/test_{method}.py tests/pruners\npytest tests/pruners/test_{method}.py")
    bash(clone, activate + f"mypy pruners/{method}.py\nruff check pruners tests\nruff format --check pruners tests")


def test_a_commit_hook_formats_as_make_lint_asks() -> None:
    hook = re.search(r"ruff-pre-commit\s+rev: v([\d.]+)", (ROOT / ".pre-commit-config.yaml").read_text())
    assert hook is not None
    assert f'"ruff=={hook[1]}"' in (ROOT / "pyproject.toml").read_text()
