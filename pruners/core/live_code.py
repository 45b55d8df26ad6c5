"""The code of a method that is in no file: written in a notebook cell, or at a prompt.

It is told from the source of its functions, which notebooks keep, else from what they were compiled to. What these use
of the same session (another function, a number) belongs to it, as far as their names say so: an edited cell is other
code, wherever it stands.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import source
from .errors import CatalogError
from .value_text import value_text


def is_live(cls: type) -> bool:
    """Whether no file holds what this class computes. Of `__main__`, a script's own file does."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if file is None or cls.__module__ != "__main__":
        return file is None
    written = [Path(function.__code__.co_filename) for function in _functions(cls)]
    return bool(written) and Path(file).resolve() not in [path.resolve() for path in written]


def fingerprint(cls: type) -> str:
    """One hash of the functions of a class, and of all that they use of its session."""
    found: dict[int, str] = {}
    for function in _functions(cls):
        _add(function, found)
    if found and "written_as" not in vars(cls):
        found[id(cls)] = _constants(cls)
    if not found:
        raise CatalogError(f"{cls.__qualname__} has no code that could be told: write its methods as Python functions")
    return f"sha256-{hashlib.sha256(' '.join(found.values()).encode()).hexdigest()}"


def compiled(cls: type) -> str:
    """One hash of what the functions of a class were compiled to: of what runs, whatever stands in a file."""
    parts = [_compiled(function.__code__) for function in _functions(cls)]
    return f"sha256-{hashlib.sha256(' '.join(parts).encode()).hexdigest()}"


def place(cls: type) -> tuple[Path, int]:
    """Where a class was written: the file, or the name of a cell, and the line."""
    code = next((function.__code__ for function in _functions(cls)), None)
    return (Path(code.co_filename), code.co_firstlineno) if code else (Path(cls.__module__), 0)


def _functions(cls: type) -> Iterator[types.FunctionType]:
    """The functions that an author wrote: the decorated one, or those of a class and of its bases in the session."""
    if "written_as" in vars(cls):
        yield from _inside(vars(cls)["written_as"])
        return
    for base in cls.__mro__:
        if base.__module__ == cls.__module__:
            yield from (f for value in vars(base).values() for f in _inside(value) if not _is_generated(f))


def _inside(value: Any) -> list[types.FunctionType]:
    """The functions of a class's attribute: plain ones, and those behind a property or a class method."""
    if isinstance(value, property):
        value = [value.fget, value.fset]
    elif isinstance(value, functools.cached_property):
        value = [value.func]
    elif isinstance(value, (classmethod, staticmethod)):
        value = [value.__func__]
    else:
        value = [value]
    return [inner for inner in map(_unwrapped, value) if isinstance(inner, types.FunctionType)]


def _unwrapped(value: Any) -> Any:
    """The function inside `functools.cache`, `numba.njit` or `functools.partial`."""
    while True:
        inner = getattr(value, "__wrapped__", None) or getattr(value, "py_func", None)
        if isinstance(value, functools.partial):
            inner = value.func
        if inner is None:
            return value
        value = inner


def _is_generated(function: types.FunctionType) -> bool:
    """By `dataclasses`, which compile what they add to a class from a string; that follows from the fields."""
    return function.__code__.co_filename == "<string>" or function.__module__ == "dataclasses"


def _add(function: types.FunctionType, found: dict[int, str]) -> None:
    """A function, and what it uses of its session, by identity: each once, though they may call one another."""
    if id(function) in found:
        return
    found[id(function)] = _text(function)
    for name, given in sorted(_used(function).items()):
        value = _unwrapped(given)
        if isinstance(given, functools.partial):
            found[id(function)] += f" {name}={value_text(given.args)}{value_text(given.keywords)}"
        if isinstance(value, types.FunctionType) and value.__module__ == function.__module__:
            _add(value, found)
        elif inspect.isclass(value) and value.__module__ == function.__module__:
            for each in _functions(value):
                _add(each, found)
            found[id(function)] += _constants(value)
        elif (told := value_text(value)) is not None:
            found[id(function)] += f" {name}={told}"
        elif file := _file_beside(value):
            found[id(function)] += f" {source.fingerprint(source.with_imports(file, file.parent), file.parent)}"


def _constants(cls: type) -> str:
    """The plain values that a class holds beside its functions."""
    own = {name: value_text(value) for name, value in vars(cls).items() if not name.startswith("__")}
    return "".join(f" {cls.__name__}.{name}={told}" for name, told in own.items() if told is not None)


def _used(function: types.FunctionType) -> dict[str, Any]:
    """The session's values that a function, or one inside it, names; and the values of its arguments' defaults."""
    names, codes = set(function.__code__.co_freevars), [function.__code__]
    while codes:
        code = codes.pop()
        names |= set(code.co_names)
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    known = {**function.__globals__, **{name: cell.cell_contents for name, cell in cells}}
    return {name: known[name] for name in names if name in known} | _defaults(function)


def _file_beside(value: Any) -> Path | None:
    """The file, in the folder where the session runs, that a module, function or class was imported from."""
    module = value if inspect.ismodule(value) else sys.modules.get(getattr(value, "__module__", None) or "")
    file = Path(getattr(module, "__file__", None) or "")
    return file.resolve() if file.suffix == ".py" and file.resolve().parent == Path.cwd() else None


def _defaults(function: types.FunctionType) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    return {f"argument {p.name}": p.default for p in parameters if p.default is not p.empty}


def _text(function: types.FunctionType) -> str:
    try:
        return source.syntax(textwrap.dedent(inspect.getsource(function)).encode())
    except (OSError, TypeError, CatalogError):  # nobody kept its source, or it is a part of a line
        return hashlib.sha256(_compiled(function.__code__).encode()).hexdigest()


def _compiled(code: types.CodeType) -> str:
    """What a function was compiled to, the functions inside it included; where it stood is no part of that."""
    constants = [_compiled(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    return repr((code.co_code.hex(), constants, code.co_names, code.co_varnames, code.co_freevars))
