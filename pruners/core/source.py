"""Which code a method is: a fingerprint of the files it was read from, so that a figure is never shown for other code.

Files are compared by their syntax: a comment, a docstring or another line break is the same code, a flipped sign is
not. What a file imports from its own folder belongs to it, as far as that can be read from its import statements.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from .errors import CatalogError


def fingerprint(files: Iterable[Path], root: Path) -> str:
    """One hash of some files below `root`, the same wherever that lies."""
    found = hashlib.sha256()
    for file in sorted(set(files)):
        found.update(f"{file.relative_to(root).as_posix()} {_code(_read(file))}\n".encode())
    return f"sha256-{found.hexdigest()}"


PROJECT = ("pruners", "harness", "leaderboard")
"""This project's packages: never part of a user's file, also if that lies beside them in a checkout."""


def with_imports(file: Path, root: Path, packages: Collection[str] | None = None) -> list[Path]:
    """A file and all that it imports, directly or not, from below `root`: of `packages`, or all but this project's."""
    found, ahead = {file}, [file]
    while ahead:
        for name in _imported(ahead.pop(), root):
            top = name.split(".")[0]
            if top in PROJECT if packages is None else top not in packages:
                continue
            for candidate in _files_of(name, root):
                if candidate not in found:
                    found.add(candidate)
                    ahead.append(candidate)
    return sorted(found)


def _code(source: bytes) -> str:
    try:
        return syntax(source)
    except CatalogError:  # a file beside it that is not valid Python: whoever imports it will say so
        return hashlib.sha256(source).hexdigest()


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise CatalogError(f"{file} cannot be read: {error.strerror}") from error


def _files_of(name: str, root: Path) -> Iterator[Path]:
    """The files that `import a.b.c` runs: packages on the way and the module; `c` may also be a name inside `a.b`."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        place = root.joinpath(*parts[:end])
        yield from (f for f in (place.with_suffix(".py"), place / "__init__.py") if f.is_file())


def _imported(file: Path, root: Path) -> list[str]:
    """Dotted names that a file imports, as seen from `root`; of one that is not valid Python none can be told."""
    try:
        tree = _tree(_read(file))
    except CatalogError:
        return []
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = node.module or ""
            if node.level:  # relative: from the folder of this file, or one above it
                folders = file.relative_to(root).parts[: -node.level]
                start = ".".join([*folders, *([start] if start else [])])
            names += [f"{start}.{alias.name}".lstrip(".") for alias in node.names]
    return names


@functools.lru_cache(maxsize=512)
def _tree(source: bytes) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise CatalogError(f"the file is not valid Python: {error}") from error


@functools.lru_cache(maxsize=512)
def syntax(source: bytes) -> str:
    """A hash of what Python reads in a source: the same in every release of Python, unlike `ast.dump`."""
    found = hashlib.sha256()
    _write(_tree(source), found.update)
    return found.hexdigest()


def _write(node: object, write: Callable[[bytes], object]) -> None:
    """A node with all its fields that are not empty. Where names are stored or loaded follows from where they stand."""
    if isinstance(node, ast.AST):
        write(f"({type(node).__name__}".encode())
        for name, value in ast.iter_fields(node):
            if name == "body" and isinstance(value, list):
                value = _without_docstring(node, value)
            if name not in ("ctx", "kind", "type_comment") and value is not None and value != []:
                write(f" {name}=".encode())
                _write(value, write)
        write(b")")
    elif isinstance(node, list):
        for item in node:
            _write(item, write)
            write(b",")
    else:
        write(repr(node).encode())


def _without_docstring(node: ast.AST, body: list[ast.stmt]) -> list[ast.stmt]:
    documented = isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef))
    if documented and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        return body[1:] if isinstance(body[0].value.value, str) else body
    return body
