"""Ways to spoil one thing of a folder of submissions, as carelessly or as carefully as one likes."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from harness import parquet
from harness.files import checksum
from harness.submissions import tables
from harness.submissions.problems import Problem
from harness.submissions.schema import Submission, content_id
from harness.submissions.validation import validate


def pin(folder: Path, method: str, backbone: str = "toy") -> None:
    """As a maintainer does, from the submission of a method."""
    from typer.testing import CliRunner

    from harness.cli import app

    (path,) = (folder / "pages" / backbone / method).glob("*.json")
    options = ["--by", "the toy maintainers", "--date", "2026-11-17", "--submissions", str(folder)]
    result = CliRunner().invoke(app, ["pin", path.stem, *options])
    assert result.exit_code == 0, (result.output, result.exception)


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
        frame = pd.read_parquet(tables.per_query_path(path))
        changed = change(frame)
        frame = frame if changed is None else changed
        data = parquet.pack({name: frame[name].tolist() for name in tables.PER_QUERY}, tables.PER_QUERY)
        tables.per_query_path(path).write_bytes(data)
        return self.json(method, lambda content: content.update(per_query=checksum(data)), forge_id=True)

    def kept(self, method: str, change: Callable[[list[dict]], None]) -> Path:
        path = self.path(method)
        table = tables.read_kept(path).to_pylist()
        change(table)
        data = parquet.pack({name: [row[name] for row in table] for name in tables.KEPT}, tables.KEPT)
        tables.kept_path(path).write_bytes(data)
        return self.json(method, lambda content: content.update(kept=checksum(data)), forge_id=True)

    def only(self, *methods: str) -> None:
        """Leave these submissions only, so that a check takes a moment."""
        for folder in (self.root / "pages" / "toy").iterdir():
            if folder.is_dir() and folder.name not in methods:
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
            if path.with_suffix(ending).exists():
                path.with_suffix(ending).replace(new.with_suffix(ending))
        return new


def cell(**changes: object) -> Callable[[dict], None]:
    return lambda s: s["cells"][1].update(changes)


def consistent(spoiled: Spoiled, method: str, change: Callable[[pd.DataFrame], None]) -> None:
    """Change rankings and let every figure follow, as one who made up a whole run would: by pytrec_eval."""
    import pytrec_eval

    qrels = pd.read_parquet(spoiled.root / "pages" / "qrels.parquet")

    def follow(frame: pd.DataFrame) -> None:
        change(frame)
        for i, row in enumerate(frame.itertuples()):
            here = qrels[(qrels["data_set"] == row.data_set) & (qrels["query"] == row.query)]
            judge = pytrec_eval.RelevanceEvaluator(
                {"q": dict(zip(here["page"], map(int, here["grade"]), strict=True))},
                {f"ndcg_cut_{k}" for k in (1, 5, 10)},
            )
            scores = judge.evaluate({"q": {page: 100.0 - rank for rank, page in enumerate(row.top_10)}})["q"]
            for k in (1, 5, 10, 50, 100):
                frame.at[i, f"ndcg@{k}"] = scores[f"ndcg_cut_{min(k, 10)}"]

    path = spoiled.rows(method, follow)
    frame = pd.read_parquet(path.with_suffix(".parquet"))

    def cells(content: dict) -> None:
        for c in content["cells"]:
            rows = frame[(frame["data_set"] == c["data_set"]) & (frame["budget"] == c["budget"])]
            rows = rows[rows["language"] == c.get("language", "")]
            c["ndcg"] = {str(k): float(rows[f"ndcg@{k}"].mean()) for k in (1, 5, 10, 50, 100)}
            c["trial_deviation"] = float(np.std(rows.groupby("trial")["ndcg@5"].mean()))

    spoiled.json(method, cells, forge_id=True)
