"""What is published: a wheel that brings all it reads, and works in an environment without a checkout."""

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.copied_tree import copy_tree
from tests.new_environment import install, new_environment

PACKAGES = ("harness", "leaderboard", "pruners")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_tree(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def files(tree: Path) -> set[str]:
    """All files of the packages, code and data."""
    return {str(p.relative_to(tree)) for name in PACKAGES for p in (tree / name).rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def wheel(tree: Path, files: set[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.check_call([*pip, "--wheel-dir", str(out), str(tree)])
    (found,) = out.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel, which takes from this one what the project depends on."""
    folder = tmp_path_factory.mktemp("environment")
    install(new_environment(folder), wheel)
    return folder


def run(environment: Path, cwd: Path, *args: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env |= {"PRUNEBOARD_STORES": str(cwd / "stores"), "COLUMNS": "200"}
    return subprocess.run(
        [str(environment / "bin" / args[0]), *args[1:]], cwd=cwd, env=env, text=True, capture_output=True
    )


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_packages_and_nothing_else(wheel: Path, files: set[str]) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == files


@pytest.mark.slow
def test_the_source_distribution_has_them_too(tree: Path, files: set[str], tmp_path: Path) -> None:
    code = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    subprocess.check_call([sys.executable, "-c", code, str(tmp_path)], cwd=tree, stdout=subprocess.DEVNULL)
    (made,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(made) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= files
    assert names >= {"README.md", "LICENSE", "pyproject.toml"}


@pytest.mark.slow
def test_an_installed_wheel_evaluates_and_shows_its_run_without_a_checkout(environment: Path, tmp_path: Path) -> None:
    where = run(environment, tmp_path, "python", "-c", "import harness, pruners, leaderboard as l; print(l.__file__)")
    assert Path(where.stdout.strip()).is_relative_to(environment), where.stderr
    listed = json.loads(run(environment, tmp_path, "harness", "list", "pruners", "--json").stdout)
    assert all(Path(row["place"]).is_relative_to(environment) for row in listed)

    options = ["--benchmark", "minidocs-v2", "--pruner", "kcenter", "--pruner", "random", "--out", "run"]
    measured = run(environment, tmp_path, "harness", "evaluate", *options)
    assert measured.returncode == 0, measured.stderr
    assert "kcenter" in measured.stdout

    shown = run(environment, tmp_path, "harness", "leaderboard", "--runs", "run")
    assert shown.returncode == 0, shown.stderr
    assert "your runs alone: the project's submissions lie in its repository" in shown.stderr
    assert "kcenter" in (tmp_path / "site" / "method" / "kcenter.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "way_out"),
    [
        (["leaderboard"], "show runs of your own with --runs, or name a folder with --submissions"),
        (["submit", "run", "--submitter", "Me"], "name a folder with --out"),
        (["validate"], "name a submission or a folder of submissions"),
    ],
)
def test_what_needs_the_projects_submissions_says_where_they_are(
    environment: Path, tmp_path: Path, args: list[str], way_out: str
) -> None:
    refused = run(environment, tmp_path, "harness", *args)
    assert refused.returncode == 2
    assert "the project's submissions lie in its repository, not in an installed package" in refused.stderr
    assert way_out in refused.stderr
    assert list(tmp_path.iterdir()) == []
