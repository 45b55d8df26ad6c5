"""A finished run of the toy retriever, its submissions, and ways to spoil one of them."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "evaluation"))
from toy import write_backbone, write_data_set

from harness import parquet
from harness.evaluation.config import Config
from harness.evaluation.evaluate import Evaluation, Places, evaluate
from harness.progress import quiet
from harness.store.format import checksum
from harness.submissions import rows
from harness.submissions.identity import content_id
from harness.submissions.problems import Problem
from harness.submissions.schema import Submission
from harness.submissions.validate import validate

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
    return evaluate(config, Places(folder / "stores", folder / "run", 1), quiet)


@pytest.fixture(scope="session")
def submitted(evaluation: Evaluation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the submissions of the run."""
    from typer.testing import CliRunner

    from harness.cli import app

    folder = tmp_path_factory.mktemp("submitted")
    options = ["--submitter", "the toy team", "--date", "2026-11-16", "--out", str(folder)]
    result = CliRunner().invoke(app, ["submit", str(evaluation.run.folder), *options])
    assert result.exit_code == 0, result.output
    return folder


class Spoiled:
    """A copy of the submissions in which one thing is changed at a time."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, method: str) -> Path:
        (found,) = (self.root / "pages" / "toy" / method).glob("*.json")
        return found

    def json(self, method: str, change: Callable[[dict], None], *, forge_id: bool = False) -> Path:
        """Change the JSON file. A forger also gives it the id that belongs to the new content, and moves its files."""
        path = self.path(method)
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))
        return self._forge(path) if forge_id else path

    def rows(self, method: str, change: Callable[[pd.DataFrame], pd.DataFrame | None]) -> Path:
        """Change the table of queries, its checksum and the id: only recomputation can tell."""
        path = self.path(method)
        frame = pd.read_parquet(rows.per_query_path(path))
        changed = change(frame)
        frame = frame if changed is None else changed
        data = parquet.pack({name: frame[name].tolist() for name in rows.PER_QUERY}, rows.PER_QUERY)
        rows.per_query_path(path).write_bytes(data)
        return self.json(method, lambda content: content.update(per_query=checksum(data)), forge_id=True)

    def kept(self, method: str, change: Callable[[list[dict]], None]) -> Path:
        path = self.path(method)
        table = rows.read_kept(path).to_pylist()
        change(table)
        data = parquet.pack({name: [row[name] for row in table] for name in rows.KEPT}, rows.KEPT)
        rows.kept_path(path).write_bytes(data)
        return self.json(method, lambda content: content.update(kept=checksum(data)), forge_id=True)

    def only(self, *methods: str) -> None:
        """Leave these submissions only, so that a check takes a moment."""
        for folder in (self.root / "pages" / "toy").iterdir():
            if folder.name not in methods:
                shutil.rmtree(folder)

    def errors(self) -> list[Problem]:
        return [problem for problem in validate(self.root).problems if problem.level == "error"]

    def warnings(self) -> list[Problem]:
        return [problem for problem in validate(self.root).problems if problem.level == "warning"]

    def _forge(self, path: Path) -> Path:
        submission = Submission.model_validate_json(path.read_text())
        new = path.with_stem(content_id(submission))
        content = json.loads(path.read_text()) | {"id": new.stem}
        path.write_text(json.dumps(content))
        for ending in (".json", ".parquet", ".kept.parquet"):
            path.with_suffix(ending).replace(new.with_suffix(ending))
        return new


@pytest.fixture
def spoiled(submitted: Path, tmp_path: Path) -> Spoiled:
    return Spoiled(Path(shutil.copytree(submitted, tmp_path / "copy")))
