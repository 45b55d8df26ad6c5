"""Do the tests notice? Break one small thing at a time in a copy of the project, and run the tests that belong to it.

    python scripts/mutate.py -n 30 --seed 1            some minutes for the tests as they are, half a minute a mutant
    python scripts/mutate.py -n 20 --only harness/metrics

A mutant that passes its tests has survived: its diff is printed, and either a test is missing or nothing changed that
anyone could see. Those of the second kind are listed in `equivalent_mutants.txt` and not tried again. Messages,
decorators, annotations, assertions and `zip(strict=…)` are left alone.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import itertools
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numba
import pandas  # noqa: F401
import pyarrow.parquet  # noqa: F401
import pytest
import torch  # noqa: F401

ROOT = Path(__file__).resolve().parents[1]
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")
TESTS = {
    "pruners": ["tests/pruners"],
    "harness/metrics": ["tests/harness/metrics"],
    "harness/scoring": ["tests/harness/scoring"],
    "harness/calibration": ["tests/harness/calibration"],
    "harness/evaluation": ["tests/harness/evaluation"],
    "harness/submissions": ["tests/harness/submissions"],
    "harness/store": [f"tests/harness/test_{name}.py" for name in ("store", "store_writer", "import_vectors")],
}
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis")

FLIPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "is": "is not", "is not": "is", "in": "not in", "not in": "in", "and": "or", "or": "and",
    "+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "*", "**": "*", "@": "*", "&": "|", "|": "&",
}  # fmt: skip
OPERATOR = re.compile(r"[<>=!]=|[<>]|\bis not\b|\bis\b|\bnot in\b|\bin\b|\band\b|\bor\b|//|\*\*|[-+*/%@&|]")
UNTOUCHED = (ast.JoinedStr, ast.Raise, ast.Assert)
UNTOUCHED_FIELDS = ("decorator_list", "annotation", "returns")


@dataclass(frozen=True)
class Mutant:
    """One changed place of a file."""

    path: str
    before: str
    after: str

    @property
    def diff(self) -> list[str]:
        lines = self.before.splitlines(), self.after.splitlines()
        return list(difflib.unified_diff(*lines, self.path, self.path, lineterm="", n=0))[2:]

    def __str__(self) -> str:
        """`file:line: before -> after`, as the list of equivalent ones has it."""
        line = re.findall(r"\d+", self.diff[0])[0]
        old, new = ([text[1:].strip() for text in self.diff[1:] if text[0] == sign] for sign in "-+")
        return f"{self.path}:{line}: {' '.join(old)} -> {' '.join(new)}"


def mutants(path: str, source: str) -> Iterator[Mutant]:
    """All mutants of a file that are another program."""
    data, tree = source.encode(), ast.parse(source)
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def span(node: ast.AST) -> tuple[int, int]:
        at: Any = node
        return starts[at.lineno - 1] + at.col_offset, starts[at.end_lineno - 1] + at.end_col_offset

    def flipped(*sides: ast.AST) -> Iterator[tuple[int, int, str]]:
        """The operator between each two neighbours."""
        for a, b in itertools.pairwise(sides):
            start, stop = span(a)[1], span(b)[0]
            yield start, stop, OPERATOR.sub(lambda found: FLIPS[found[0]], data[start:stop].decode(), count=1)

    def edits(node: ast.AST) -> Iterator[tuple[int, int, str]]:
        match node:
            case ast.Compare():
                yield from flipped(node.left, *node.comparators)
            case ast.BoolOp():
                yield from flipped(*node.values)
            case ast.BinOp():
                yield from flipped(node.left, node.right)
            case ast.AugAssign():
                yield from flipped(node.target, node.value)
            case ast.UnaryOp(op=ast.Not()):
                yield span(node)[0], span(node)[0] + 3, ""
            case ast.Constant(value=bool() as value):
                yield *span(node), str(not value)
            case ast.Constant(value=int() | float() as number):
                yield *span(node), f"{number + 1}"
                yield *span(node), f"({number - 1})"
            case ast.Call(func=ast.Name(id="min" | "max")):
                yield *span(node.func), "max" if ast.unparse(node.func) == "min" else "min"
            case ast.Return(value=ast.expr() as given):
                yield *span(given), "None"
            case ast.Expr(value=ast.Call()):
                yield *span(node), "pass"
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            yield *span(node.test), f"(not ({data[slice(*span(node.test))].decode()}))"

    for node in _places(tree):
        for start, stop, new in edits(node):
            after = (data[:start] + new.encode() + data[stop:]).decode()
            with contextlib.suppress(SyntaxError):
                if after != source and ast.parse(after):
                    yield Mutant(path, source, after)


def _places(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one that a fault may be put into."""
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, UNTOUCHED) or field in UNTOUCHED_FIELDS:
                continue
            if isinstance(child, ast.keyword) and child.arg == "strict":
                continue
            yield child
            yield from _places(child)


def change(text: str) -> str:
    """A mutant without its line, which moves."""
    return re.sub(r":\d+: ", ": ", text, count=1)


def left_out(folder: str, names: list[str]) -> set[str]:
    """What a copy does not need. Runs lie in the project's own folder; `harness/runs` is code."""
    return {*LEFT_OUT(folder, names), *({"runs", "site", "stores"} if Path(folder) == ROOT else ())}


def passes(copy: Path, tests: list[str], cache: Path, seconds: float) -> bool:
    """Whether the tests pass in the copy. What takes longer than it may has been noticed too.

    They run in a fork of this process, which has imported the large libraries once and for all.
    """
    child = os.fork()
    if child == 0:
        _run_tests(copy, tests, cache)
    ends = time.monotonic() + seconds
    try:
        while time.monotonic() < ends:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return status == 0
            time.sleep(0.05)
        return False
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # and the processes that it started
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)


def _run_tests(copy: Path, tests: list[str], cache: Path) -> NoReturn:
    """In the fork: run pytest in the copy, and leave."""
    status = 1
    try:
        os.setsid()
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(silent, stream)
        os.chdir(copy)
        sys.path[:] = [str(copy), *(path for path in sys.path if Path(path) not in (ROOT, ROOT / "scripts"))]
        os.environ |= {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": str(cache)}
        sys.dont_write_bytecode = True
        numba.config.CACHE_DIR = str(cache)
        status = int(pytest.main(["-x", "-q", "-n0", "-m", "not slow", "-p", "no:cacheprovider", *tests]))
    finally:
        os._exit(status)


def compiled_code(sources: dict[str, str], path: str) -> bool:
    """Whether numba may have kept something of this file: numba looks only at the file that a function stands in."""
    users = [text for text in sources.values() if "numba.njit" in text]
    imported = re.compile(rf"from \S*\b{Path(path).stem} import|import .*\b{Path(path).stem}\b")
    return sources[path] in users or any(imported.search(text) for text in users)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-n", type=int, default=30, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", help="files whose path starts with this; may be repeated")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for the tests of a mutant")
    asked = parser.parse_args()
    files = [file for folder in TESTS for file in sorted((ROOT / folder).rglob("*.py"))]
    sources = {file.relative_to(ROOT).as_posix(): file.read_text() for file in files}
    only = tuple(asked.only or [""])
    known = set(map(change, EQUIVALENT.read_text().splitlines()))
    every = [m for path, text in sources.items() if path.startswith(only) for m in mutants(path, text)]
    every = [mutant for mutant in every if change(str(mutant)) not in known]
    chosen = random.Random(asked.seed).sample(every, min(asked.n, len(every)))
    print(f"{len(chosen)} of {len(every)} mutants")
    with tempfile.TemporaryDirectory() as folder:
        copy, warm, survivors = Path(folder) / "copy", Path(folder) / "compiled", 0
        shutil.copytree(ROOT, copy, symlinks=True, ignore=left_out)
        tests_of = {m: next(tests for at, tests in TESTS.items() if m.path.startswith(f"{at}/")) for m in chosen}
        for tests in {" ".join(tests): tests for tests in tests_of.values()}.values():
            if not passes(copy, tests, warm, 3 * asked.timeout):
                sys.exit(f"{' '.join(tests)} must pass before anything is broken")
        for i, (mutant, tests) in enumerate(tests_of.items(), start=1):
            cache = Path(folder) / f"compiled-{i}" if compiled_code(sources, mutant.path) else warm
            (copy / mutant.path).write_text(mutant.after)
            survived = passes(copy, tests, cache, asked.timeout)
            (copy / mutant.path).write_text(mutant.before)
            survivors += survived
            print(f"{i:4d} {'SURVIVED' if survived else 'killed  '} {mutant}", flush=True)
            if survived:
                print("\n".join(f"     {line}" for line in mutant.diff), flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} killed: {100 * (1 - survivors / max(1, len(chosen))):.0f} %")


if __name__ == "__main__":
    main()
