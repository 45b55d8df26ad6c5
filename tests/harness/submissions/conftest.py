"""A finished run of the toy retriever, and its submissions."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "evaluation"))
from spoiling import Spoiled, pin
from toy import write_backbone, write_data_set

from harness.evaluation.config import Config
from harness.evaluation.evaluate import Evaluation, RunPaths, evaluate
from harness.progress import quiet

METHODS = ("sap", "random", "docpruner", "kmeans", "row_pool")
CONTRAST = """
from pruners import scorer


@scorer("contrast", needs=())
def contrast(page):
    '''Distance from the page's mean vector.'''
    return (page.vectors - page.vectors.mean(0)).norm(dim=-1)
"""


@pytest.fixture(scope="session")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    folder = tmp_path_factory.mktemp("submissions")
    write_data_set(folder / "pages" / "plain", range(25))
    write_data_set(folder / "pages" / "tongues", range(30, 55), queries=12, languages=("english", "french"))
    write_data_set(folder / "calibration", range(100, 140), queries=40)
    own = folder / "own.py"
    own.write_text(CONTRAST)
    config = Config(
        backbone=str(write_backbone(folder)),
        benchmark=str(folder / "pages"),
        calibration=str(folder / "calibration"),
        pruners=(*METHODS, str(own)),
        budgets=(0.1, 0.2),
        trials=2,
    )
    return evaluate(config, RunPaths(folder / "stores", folder / "run", 1), quiet)


@pytest.fixture(scope="session")
def submitted(evaluation: Evaluation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the submissions of the run."""
    from typer.testing import CliRunner

    from harness.cli import app

    folder = tmp_path_factory.mktemp("submitted")
    options = ["--submitter", "the toy team", "--date", "2026-11-16", "--out", str(folder)]
    result = CliRunner().invoke(app, ["submit", str(evaluation.run.folder), *options])
    assert result.exit_code == 0, result.output
    pin(folder, "sap")
    return folder


@pytest.fixture
def spoiled(submitted: Path, tmp_path: Path) -> Spoiled:
    return Spoiled(Path(shutil.copytree(submitted, tmp_path / "copy")))


@pytest.fixture
def reproduce(evaluation: Evaluation) -> Callable[..., tuple[int, str]]:
    """`harness reproduce` on the toy retriever: exit status and what it said."""
    from typer.testing import CliRunner

    from harness.cli import app
    from pruners.core.errors import PruneBoardError
    from pruners.guests import sandbox

    home, shut_in = evaluation.run.folder.parent, "auto" if sandbox.missing() else "on"

    def run(root: Path, *arguments: str) -> tuple[int, str]:
        places = ["--submissions", str(root), "--data", str(home), "--backbone", str(home / "toy_backbone.py")]
        more = ["--workers", "1", "--store", str(home / "stores"), "--sandbox", shut_in]
        result = CliRunner().invoke(app, ["reproduce", *arguments, *places, *more])
        if isinstance(result.exception, PruneBoardError):
            raise result.exception
        return result.exit_code, " ".join(result.output.split())

    return run
