"""Ways to spoil one thing of a folder of submissions, as carelessly or as carefully as one likes."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from harness import parquet
from harness.files import checksum
from harness.submissions import tables
from harness.submissions.problems import Problem
from harness.submissions.schema import Submission, content_id
from harness.submissions.validation import validate


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


def cell(**changes: object) -> Callable[[dict], None]:
    return lambda s: s["cells"][1].update(changes)
