"""Finding plugins without running them: decorated functions and classes are read from the source with `ast`.

So a list of everything there is costs no import of torch (0.2 s, against 2 s and more with all methods imported), and a
file is executed only when one of its methods is used. Decorators must therefore be written out in literals. Three
places are searched: a folder of this project, files by path, installed packages by entry point. Nothing here knows what
a pruner is.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import importlib.util
import re
import sys
import tempfile
import traceback
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from . import source
from .errors import CatalogError

FINGERPRINT = "__pruneboard_code__"
"""Where a module that was run from a user's file holds what it was made of."""

TEXTS = "__pruneboard_texts__"
"""Where it holds the text of that file, and of what it imports from the same folder, each by its path there."""

FROM_FILE = "pruneboard_file_"
"""How the names of such modules begin."""

NAMES = {"backbone": r"[A-Za-z_][\w.-]*"}
"""What a name may look like, by decorator, where it need not be a word that the text form of a pruner can hold."""


@dataclass(frozen=True)
class CatalogEntry:
    """One plugin: what its decorator says, and where it is."""

    name: str
    decorator: str
    options: dict[str, Any] = field(hash=False)
    doc: str  # the docstring
    parameters: tuple[str, ...]  # as written: "layers=None"
    file: Path
    line: int
    symbol: str  # the object's name in its module
    module: str | None = None  # importable name; None for a file by path
    source: str = "file"  # built-in, file, or the package that brings it

    @property
    def summary(self) -> str:
        return self.doc.partition("\n")[0]

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


def scan_file(
    path: Path, decorators: Collection[str], *, module: str | None = None, source: str = "file"
) -> list[CatalogEntry]:
    """The plugins a file declares at its top level, in order."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise CatalogError(f"{path}: cannot be read: {error}") from error
    return scan_text(text, path, decorators, module=module, source=source)


def scan_text(
    text: bytes, path: Path, decorators: Collection[str], *, module: str | None = None, source: str = "file"
) -> list[CatalogEntry]:
    """The same of a text; `path` is where it is said to be from."""
    try:
        tree = ast.parse(text, filename=str(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # the last two: brackets without end
        line = getattr(error, "lineno", None) or 1
        raise CatalogError(f"{path}:{line}: {getattr(error, 'msg', error)}; the file is not valid Python") from error
    found = []
    for node in tree.body:
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        for call in node.decorator_list:
            if isinstance(call, ast.Call) and _called(call) in decorators:
                name, options = _literals(path, call)
                found.append(
                    CatalogEntry(
                        name,
                        _called(call),
                        options,
                        ast.get_docstring(node) or "",
                        _parameters(node),
                        path,
                        node.lineno,
                        node.name,
                        module,
                        source,
                    )
                )
    return found


@functools.cache  # the project's own files do not change under a running process
def scan_package(name: str, folder: Path, decorators: tuple[str, ...]) -> tuple[CatalogEntry, ...]:
    """The plugins of every file directly in a package's folder."""
    files = sorted(path for path in folder.glob("*.py") if path.stem != "__init__")
    return tuple(e for f in files for e in scan_file(f, decorators, module=f"{name}.{f.stem}", source="built-in"))


def scan_entry_points(group: str, decorators: Collection[str]) -> list[CatalogEntry]:
    """The plugins that installed packages announce under an entry-point group, as `module` or `module:object`."""
    points = sorted(entry_points(group=group), key=lambda point: (point.name, point.value))
    return [entry for point in points for entry in _scan_entry_point(point, decorators)]


def file_and_rest(selector: str) -> tuple[Path | None, str]:
    """`file.py:rest` or `file.py(rest)` as a user types it, split; (None, selector) where no file is named."""
    match = re.fullmatch(r"(.*?\.py)(?::(.*)|(\(.*))?", selector, re.DOTALL)
    if match is None:
        return None, selector
    file = Path(match[1])
    if not file.is_file():
        raise CatalogError(f"there is no file {file}")
    return file, match[2] or match[3] or ""


def unique(entries: Iterable[CatalogEntry]) -> dict[str, CatalogEntry]:
    """Entries by name; two of one name are an error that names both places."""
    by_name: dict[str, CatalogEntry] = {}
    for entry in entries:
        other = by_name.setdefault(entry.name, entry)
        if (other.file, other.line) != (entry.file, entry.line):
            raise CatalogError(
                f"the name {entry.name!r} is taken twice: {other.place} ({other.source}) and {entry.place} "
                f"({entry.source}); rename one of them"
            )
    return by_name


def load(entry: CatalogEntry) -> Any:
    """Import the plugin's module, and with it run its file, and return the object."""
    try:
        module = importlib.import_module(entry.module) if entry.module else load_file(entry.file)
    except CatalogError as error:
        raise CatalogError(f"{entry.file}: {error}") from error
    except Exception as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(entry.file)]
        place = f"{entry.file}:{lines[-1]}" if lines else str(entry.file)
        raise CatalogError(f"{place}: importing it failed with {type(error).__name__}: {error}") from error
    return getattr(module, entry.symbol)


def load_file(path: Path) -> ModuleType:
    """Run a file. Once a process, unless it was edited meanwhile: its fingerprint is part of the module's name.

    The module is registered in `sys.modules`, where dataclasses and pickle look types up.
    """
    path = path.resolve()
    files = source.with_imports(path, path.parent)
    code = source.fingerprint(files, path.parent)
    name = _module_name(path, code)
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise CatalogError("not a Python file")
    _forget_helpers([file for file in files if file != path])
    module = importlib.util.module_from_spec(spec)
    module.__dict__[FINGERPRINT] = code
    module.__dict__[TEXTS] = tuple((file.relative_to(path.parent).as_posix(), file.read_bytes()) for file in files)
    sys.modules[name] = module
    try:
        # its text, not what Python keeps compiled of it: that is told apart by seconds and size, which an edit may keep
        exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), module.__dict__)
        if source.fingerprint(source.with_imports(path, path.parent), path.parent) != code:
            raise CatalogError("it was edited while it was read; run it again")
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _module_name(path: Path, code: str) -> str:
    return f"{FROM_FILE}{path.stem}_{hashlib.sha256(f'{path} {code}'.encode()).hexdigest()[:12]}"


def _forget_helpers(files: Collection[Path]) -> None:
    """Let what a file imports beside it be read anew: it may have been edited since it was read last."""
    for file in files:
        Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)
    importlib.invalidate_caches()
    for name, loaded in list(sys.modules.items()):
        place = getattr(loaded, "__file__", None)
        if place and not name.startswith(FROM_FILE) and Path(str(place)).resolve() in files:
            del sys.modules[name]


def code_of(module: str) -> str:
    """The fingerprint of a loaded module, with what it imports from its own folder or package."""
    loaded = sys.modules[module]
    if FINGERPRINT in vars(loaded):
        return vars(loaded)[FINGERPRINT]
    if getattr(loaded, "__file__", None) is None:
        raise CatalogError(f"what {module} computes cannot be told from a file; write its methods into one")
    return _code_of_project(module) if module.split(".")[0] in source.PROJECT else _code_in_files(module)


def _code_in_files(module: str) -> str:
    file, package = Path(str(sys.modules[module].__file__)).resolve(), module.split(".")[0]
    depth = module.count(".") + (file.name == "__init__.py")
    root = file.parents[depth]
    packages = None if module == "__main__" else (package,)  # a script: what lies beside it belongs to it
    return source.fingerprint(source.with_imports(file, root, packages), root)


_code_of_project = functools.cache(_code_in_files)
"""Of this project's own modules: what stands in their files later is not what runs."""


def code_of_class(cls: type) -> str:
    """The fingerprint of what a class computes: of its module, or of its own functions where these are in no file."""
    from . import live_code

    if live_code.is_live(cls):
        return live_code.fingerprint(cls)
    if FINGERPRINT in vars(sys.modules[cls.__module__]) or cls.__module__.split(".")[0] in source.PROJECT:
        return code_of(cls.__module__)
    # An ordinary module may have been reloaded, or edited and not reloaded: what stands in its file, and what runs.
    return f"{code_of(cls.__module__)} {live_code.compiled(cls)}"


@dataclass(frozen=True)
class InFile:
    """A class of a user's file, as it is sent to another process or machine: its place, and its text."""

    file: Path
    code: str
    symbol: str
    texts: tuple[tuple[str, bytes], ...]
    """The file and what it imports from its folder, each by its path there."""

    def load(self) -> Any:
        module = load_file(self.file if self._is_here() else self._written())
        sys.modules.setdefault(_module_name(self.file, self.code), module)  # what it learned may name its classes
        return getattr(module, self.symbol)

    def _is_here(self) -> bool:
        if not self.file.is_file():
            return False
        return source.fingerprint(source.with_imports(self.file, self.file.parent), self.file.parent) == self.code

    def _written(self) -> Path:
        """The file as it was, written out once a process: it lies not here, or is another by now."""
        if self.code not in _written_out:
            _written_out[self.code] = tempfile.TemporaryDirectory(prefix="pruneboard-")
            folder = Path(_written_out[self.code].name).resolve()
            for name, text in self.texts:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(text)
            sys.path.append(str(folder))  # where it finds what it imports
        return Path(_written_out[self.code].name).resolve() / self.file.name


_written_out: dict[str, tempfile.TemporaryDirectory[str]] = {}


def address(cls: type) -> type | InFile:
    """How another process finds a class: by itself, as pickle does, or by the file that declares it."""
    module = sys.modules.get(cls.__module__)
    if module is None or FINGERPRINT not in vars(module):
        return cls
    return InFile(Path(str(module.__file__)), vars(module)[FINGERPRINT], cls.__qualname__, vars(module)[TEXTS])


def _scan_entry_point(point: EntryPoint, decorators: Collection[str]) -> list[CatalogEntry]:
    package = f"package {point.dist.name} {point.dist.version}" if point.dist else "an installed package"
    try:
        spec = importlib.util.find_spec(point.module)
    except ImportError as error:
        raise CatalogError(f"{package} announces {point.value!r}, but importing it failed: {error}") from error
    if spec is None or spec.origin is None:
        raise CatalogError(f"{package} announces {point.value!r}, but has no such module; fix or uninstall it")
    entries = scan_file(Path(spec.origin), decorators, module=point.module, source=package)
    chosen = [entry for entry in entries if point.attr in (None, "", entry.symbol)]
    if not chosen:
        raise CatalogError(f"{package} announces {point.value!r}, but {spec.origin} declares nothing of that name")
    return chosen


def _called(call: ast.Call) -> str:
    target = call.func
    return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")


def _literals(path: Path, call: ast.Call) -> tuple[str, dict[str, Any]]:
    """A decorator's name and keyword arguments, which must be written out."""
    try:
        (name,) = [ast.literal_eval(arg) for arg in call.args]
        options = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    except ValueError as error:
        raise CatalogError(
            f'{path}:{call.lineno}: the decorator must be written out, as in @{_called(call)}("name", needs=("eos",)), '
            "so that it can be read without running the file"
        ) from error
    if not isinstance(name, str) or not re.fullmatch(NAMES.get(_called(call), r"[A-Za-z_]\w*"), name, re.ASCII):
        raise CatalogError(f"{path}:{call.lineno}: a name must be a word of letters a to z, digits and _, not {name!r}")
    return name, options


def _parameters(node: ast.FunctionDef | ast.ClassDef) -> tuple[str, ...]:
    """Hyper-parameters with their defaults, as text."""
    if isinstance(node, ast.ClassDef):
        fields = [f for f in node.body if isinstance(f, ast.AnnAssign) and isinstance(f.target, ast.Name)]
        shown = [(f.target.id, f.value) for f in fields if not _is_learned(f.value)]  # type: ignore[union-attr]
    else:
        positional, named = node.args.posonlyargs + node.args.args, node.args.kwonlyargs
        defaults = [None] * (len(positional) - len(node.args.defaults)) + list(node.args.defaults)
        pairs = zip([*positional, *named], [*defaults, *node.args.kw_defaults], strict=True)
        shown = [(arg.arg, default) for arg, default in pairs if default is not None]
    return tuple(f"{name}={ast.unparse(value)}" if value else name for name, value in shown)


def _is_learned(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and _called(value) == "learned"
