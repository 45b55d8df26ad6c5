"""The compat module mends a torchvision without operators, leaves a sound one alone, and hides nothing else."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MENDED = {"transformers", "mteb", "colpali_engine", "sentence_transformers", "peft"}

SOUND = ""
WITHOUT_OPERATORS = "import torch\ntorch.library.register_fake('torchvision::nms')(lambda *a: None)\n"
BROKEN_OTHERWISE = "raise RuntimeError('libjpeg is missing')\n"


def with_torchvision(tmp_path: Path, source: str, code: str) -> subprocess.CompletedProcess[str]:
    """Run `code` where `torchvision` is a stand-in that does on import what the named build does."""
    package = tmp_path / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text(source)
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-c", code], text=True, capture_output=True, env={**os.environ, "PYTHONPATH": path}
    )


@pytest.mark.slow
def test_missing_operators_are_declared(tmp_path: Path) -> None:
    run = with_torchvision(
        tmp_path, WITHOUT_OPERATORS, "import harness.compat as c, torchvision; print(c.DECLARED is None)"
    )
    assert run.stdout.strip() == "False", run.stderr


@pytest.mark.slow
def test_without_the_module_the_import_fails(tmp_path: Path) -> None:
    run = with_torchvision(tmp_path, WITHOUT_OPERATORS, "import torchvision")
    assert "operator torchvision::nms does not exist" in run.stderr


@pytest.mark.slow
def test_a_sound_torchvision_is_left_alone(tmp_path: Path) -> None:
    run = with_torchvision(tmp_path, SOUND, "import harness.compat as c; print(c.DECLARED is None)")
    assert run.stdout.strip() == "True", run.stderr


@pytest.mark.slow
def test_another_failure_of_torchvision_is_not_hidden(tmp_path: Path) -> None:
    run = with_torchvision(tmp_path, BROKEN_OTHERWISE, "import harness.compat")
    assert "libjpeg is missing" in run.stderr


@pytest.mark.slow
def test_the_real_libraries_import_after_it() -> None:
    code = "import harness.compat, colpali_engine, mteb, sentence_transformers, torchvision; print('all there')"
    run = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, cwd=ROOT)
    assert "all there" in run.stdout, run.stderr


def first_uses(path: Path) -> tuple[int | None, int | None]:
    """Lines of the first import of the compat module and of a library it mends."""
    compat = mended = None
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        if "harness.compat" in names:
            compat = min(compat or node.lineno, node.lineno)
        if MENDED & {name.partition(".")[0] for name in names}:
            mended = min(mended or node.lineno, node.lineno)
    return compat, mended


@pytest.mark.slow
def test_every_file_that_uses_a_mended_library_imports_it_first() -> None:
    files = [p for top in ("harness", "pruners", "leaderboard", "tests") for p in (ROOT / top).rglob("*.py")]
    users = {str(path.relative_to(ROOT)): first_uses(path) for path in files}
    users = {name: lines for name, lines in users.items() if lines[1] is not None}
    assert "harness/bench/pruners.py" in users
    late = [name for name, (compat, mended) in users.items() if compat is None or compat > mended]
    assert late == []
