"""One name for one thing: no two public classes of the project share theirs."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("harness", "pruners", "leaderboard")


def test_no_two_public_classes_share_a_name() -> None:
    where = defaultdict(list)
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(str(path.relative_to(ROOT)))
    assert len(where) > 100
    assert {name: paths for name, paths in where.items() if len(paths) > 1} == {}
