"""The text form of a pruner, `adaptive(sap(layers=11-14))`: read as Python reads a call, and written. Nothing is run.

    name, name(param=value, …); a value is a number, layers 11-14, a 'text', true, false, none, a word, or a pruner

An argument without a name is the method's first field. `|` makes a grid: one pruner for each value.
What a bare word means (a pruner, a string, a window) is decided by the type of the field it is given to.
Outside all brackets, what stands at the end of a grid and names a codec says how vectors are stored: `sap | int8`.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import itertools
import keyword
import re
import types
import typing
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pydantic

from . import plugins
from .catalog import find
from .codec import Codec
from .errors import CatalogError, ExpressionError, PruneBoardError
from .plain_text import printable_lines
from .plugins import CatalogEntry
from .text_form import TextForm
from .window import Window

if TYPE_CHECKING:
    from .contract import Pruner

FORM = "write a {what} as name or name(param=value)"
LONGEST = 4000
"""Characters of a text that an error repeats."""
WORDS = {"true": True, "false": False, "none": None}


def read(
    text: str,
    known: dict[str, CatalogEntry],
    codecs: dict[str, CatalogEntry],
    load: Callable[[CatalogEntry], Any] = plugins.load,
) -> list[tuple[Pruner, Codec | None]]:
    """The pruner that `text` describes, built from the methods in `known`, and its codec if one is named; several if it
    has a grid. `load` imports a method, or refuses to.
    """
    reader, storing = _Reader(text, known, load=load), _Reader(text, codecs, "codec")
    nodes = list(_without_grids(reader.tree()))
    named = [_called(node) in codecs and _called(node) not in known for node in nodes]
    if not any(named):
        return [(reader.build(node), None) for node in nodes]
    if len(nodes) == 1 and isinstance(nodes[0], ast.Call) and nodes[0].args and _called(nodes[0].args[0]) in known:
        around = nodes[0]  # int8(sap), dims(sap, 64): the codec around what it stores
        rest = ast.copy_location(ast.Call(around.func, around.args[1:], around.keywords), around)
        return [(reader.build(around.args[0]), storing.build(rest))]
    first = named.index(True)
    if first == 0:
        raise reader.error(nodes[0], f"{_called(nodes[0])} is a codec: write first what it stores, as in sap | int8")
    if not all(named[first:]):
        late = nodes[first + named[first:].index(False)]
        raise reader.error(late, "a pruner after a codec; write pruners first, or ask for this one by itself")
    chosen = [storing.build(node) for node in nodes[first:]]
    return [(pruner, codec) for pruner in map(reader.build, nodes[:first]) for codec in chosen]


def read_codecs(text: str, known: dict[str, CatalogEntry]) -> list[Codec]:
    """Codecs, with commas or `|` between them."""
    reader = _Reader(text, known, "codec")
    tree = reader.tree()
    nodes = tree.elts if isinstance(tree, ast.Tuple) else [tree]
    return [reader.build(each) for node in nodes for each in _without_grids(node)]


def names(text: str) -> set[str]:
    """All names in a text, as Python understands them: what it may load is among these."""
    return {node.id for node in ast.walk(_Reader(text, {}).tree()) if isinstance(node, ast.Name)}


def write(form: TextForm) -> str:
    """The shortest text that reads back as `form`: fields at their default are left out, learned state too.

    A first field that is a pruner, or of a codec any first field, stands without its name.
    """
    shown = []
    fields = dataclasses.fields(form)  # type: ignore[arg-type]
    for f in fields:
        value = getattr(form, f.name)
        if not f.metadata.get("learned") and (f.default is dataclasses.MISSING or value != f.default):
            first = f is fields[0] and (isinstance(form, Codec) or _is_pruner(type(value)))
            shown.append(_literal(value) if first else f"{f.name}={_literal(value)}")
    return form.name + (f"({', '.join(shown)})" if shown else "")


def _is_pruner(kind: Any) -> bool:
    """Whether a type is a pruner's: what has a text form and is no codec."""
    return isinstance(kind, type) and issubclass(kind, TextForm) and not issubclass(kind, Codec)


def _called(node: ast.expr) -> str:
    """The name that a node calls or is; empty if it is neither."""
    target = node.func if isinstance(node, ast.Call) else node
    return target.id if isinstance(target, ast.Name) else ""


def _literal(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    plain = isinstance(value, str) and value.isidentifier() and value.isascii()
    word = plain and value not in WORDS and not keyword.iskeyword(str(value))
    return ascii(value) if isinstance(value, (float, str)) and not word else str(value)


def _without_grids(node: ast.expr) -> Iterator[ast.expr]:
    """A node for every combination of its grids' values; those of the last grid change fastest."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        yield from itertools.chain(_without_grids(node.left), _without_grids(node.right))
    elif isinstance(node, ast.Call):
        places = [*node.args, *(named.value for named in node.keywords)]
        for values in itertools.product(*map(_without_grids, places)):
            alone, rest = list(values[: len(node.args)]), values[len(node.args) :]
            named = [ast.copy_location(ast.keyword(k.arg, v), k) for k, v in zip(node.keywords, rest, strict=True)]
            yield ast.copy_location(ast.Call(node.func, alone, named), node)
    else:
        yield node


@dataclass(frozen=True)
class _Reader:
    text: str
    known: dict[str, CatalogEntry]
    what: str = "pruner"
    load: Callable[[CatalogEntry], Any] = plugins.load

    def tree(self) -> ast.expr:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of Python, about code that is never run
                found = ast.parse(self._line, mode="eval").body
        except SyntaxError as error:
            raise self.error(self._lead + max(error.offset or 1, 1) - 1, f"{error.msg}; {self._form}") from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise self.error(0, f"{error}; {self._form}") from error
        self._refuse_other_letters(found)
        return found

    def _refuse_other_letters(self, tree: ast.expr) -> None:
        """Python takes ｍine for mine; who reads the text, or looks for a name in it, does not."""
        line = self._line.encode()
        for node in ast.walk(tree):
            name = node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.keyword) else None
            if isinstance(node, (ast.Name, ast.keyword)) and name is not None:
                written = line[node.col_offset :][: len(name.encode())]
                if written != name.encode() or not name.isascii():
                    raise self.error(node, "a name has plain letters a to z, digits and _; other text stands in quotes")

    def build(self, node: ast.expr) -> Any:
        """The pruner, or codec, that a node without grids describes."""
        target = node.func if isinstance(node, ast.Call) else node
        if not isinstance(target, ast.Name):
            raise self.error(target, f"expected the name of a {self.what}; {self._form}")
        try:
            entry = find(target.id, self.known, self.what)
        except CatalogError as error:
            raise self.error(node, str(error)) from error
        cls = self.load(entry)
        fields = [f for f in dataclasses.fields(cls) if not f.metadata.get("learned")]
        given = self._arguments(node, [f.name for f in fields], typing.get_type_hints(cls))
        missing = [f.name for f in fields if f.name not in given and f.default is dataclasses.MISSING]
        if missing:
            raise self.error(node, f"{target.id} needs {', '.join(missing)}: {target.id}({missing[0]}=…)")
        try:
            return cls(**given)
        except PruneBoardError as error:
            raise self.error(node, str(error)) from error

    def _arguments(self, node: ast.expr, fields: list[str], hints: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(node, ast.Call):
            return {}
        given: dict[str, Any] = {}
        alone: list[tuple[str | None, ast.expr | ast.keyword, ast.expr]] = [(None, value, value) for value in node.args]
        for name, place, value in [*alone, *((place.arg, place, place.value) for place in node.keywords)]:
            name = name or (fields[0] if fields and not given else None)
            if name is None:
                raise self.error(place, "only the first argument may stand without a name; write name=value")
            if name in given:
                raise self.error(place, f"{name!r} is given twice")
            if name not in fields:
                raise self.error(place, _no_parameter(ast.unparse(node.func), name, fields))
            given[name] = self._value(value, hints[name])
        return given

    def _value(self, node: ast.expr, hint: Any) -> Any:
        """A node's value as a field of type `hint` takes it."""
        options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
        pruners = any(map(_is_pruner, options))
        value: Any
        match node:
            case ast.Constant(value):
                pass
            case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
                value = -number
            case ast.BinOp(ast.Constant(int() as first), ast.Sub(), ast.Constant(int() as last)):
                value = f"{first}-{last}"  # a window, if the field takes one
            case ast.Name(word) if word in WORDS:
                value = WORDS[word]
            case ast.Name() | ast.Call() if pruners:
                value = self.build(node)
            case ast.Name(value):
                pass
            case ast.Call():
                raise self.error(node, f"expected {_describe(hint)}, not a pruner with arguments")
            case _:
                raise self.error(node, f"expected {_describe(hint)}")
        if Window in options and isinstance(value, (str, int)) and not isinstance(value, bool):
            try:
                value = Window.parse(str(value))
            except PruneBoardError as error:
                raise self.error(node, str(error)) from error
        try:
            adapter = pydantic.TypeAdapter(hint, config=pydantic.ConfigDict(arbitrary_types_allowed=True, strict=True))
            return adapter.validate_python(value)
        except pydantic.ValidationError as error:
            raise self.error(node, f"expected {_describe(hint)}, not {_literal(value)}") from error

    @property
    def _form(self) -> str:
        return FORM.format(what=self.what)

    @property
    def _lead(self) -> int:
        return len(self.text) - len(self.text.lstrip())

    @property
    def _line(self) -> str:
        """The text as one line, which Python reads without asking for brackets around it."""
        return re.sub(r"\s", " ", self.text.lstrip())

    def error(self, place: ast.expr | ast.keyword | int, message: str) -> ExpressionError:
        if isinstance(place, int):
            at = min(place, len(self.text))
        else:  # Python counts bytes
            at = self._lead + len(self._line.encode()[: place.col_offset].decode())
        return ExpressionError(
            f"cannot read this {self.what} at character {at + 1}: {message}\n  "
            f"{printable_lines(self.text, LONGEST)}\n  {' ' * at}^"
        )


def _describe(hint: Any) -> str:
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(map(str, typing.get_args(hint)))
    options = typing.get_args(hint) or (hint,)
    names = {
        Window: "layers such as 11-14",
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "a word",
    }
    return " or ".join("none" if o is type(None) else names.get(o, f"a {getattr(o, '__name__', o)}") for o in options)


def _no_parameter(pruner: str, name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"{pruner} has no parameter {name!r}; did you mean {near[0]}?"
    return f"{pruner} has no parameter {name!r}; it has {', '.join(known) or 'none'}"
