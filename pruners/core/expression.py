"""The text form of a pruner, `adaptive(sap(layers=11-14))`: a small grammar, read and written. Nothing is evaluated.

    pruner   = NAME [ "(" [ argument { "," argument } ] ")" ]
    argument = [ NAME "=" ] value { "|" value }
    value    = NUMBER | INT "-" INT | 'STRING' | true | false | none | pruner

An argument without a name is the method's first field. `|` makes a grid: one pruner for each value.
What a bare word means (a pruner, a string, a window) is decided by the type of the field it is given to.
"""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import re
import types
import typing
from dataclasses import dataclass
from typing import Any

import pydantic

from . import plugins
from .catalog import find
from .contract import Pruner
from .errors import CatalogError, ExpressionError, PruneBoardError
from .page import Window
from .plugins import CatalogEntry

TOKEN = re.compile(
    r"""\s*(?:(?P<range>\d+-\d+)(?![\w.]) | (?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])
        | (?P<string>'[^']*'|"[^"]*") | (?P<name>[A-Za-z_]\w*) | (?P<mark>[(),=|]))""",
    re.VERBOSE,
)
WORDS = {"true": True, "false": False, "none": None}


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    at: int


@dataclass(frozen=True)
class Node:
    """A name with its arguments, a literal (no name), or a grid of those."""

    at: int
    name: str | None = None
    arguments: tuple[tuple[Token | None, Node], ...] = ()
    value: Any = None
    called: bool = False
    grid: tuple[Node, ...] = ()


def read(text: str, known: dict[str, CatalogEntry]) -> list[Pruner]:
    """The pruner that `text` describes, built from the methods in `known`; several if it has a grid."""
    return [_build(text, node, known) for node in _without_grids(_Reader(text).whole())]


def write(pruner: Pruner) -> str:
    """The shortest text that reads back as `pruner`: fields at their default are left out, learned state too."""
    shown = []
    for f in dataclasses.fields(pruner):  # type: ignore[arg-type]
        value = getattr(pruner, f.name)
        if not f.metadata.get("learned") and (f.default is dataclasses.MISSING or value != f.default):
            first = f is dataclasses.fields(pruner)[0] and isinstance(value, Pruner)  # type: ignore[arg-type]
            shown.append(_literal(value) if first else f"{f.name}={_literal(value)}")
    return pruner.name + (f"({', '.join(shown)})" if shown else "")


def _literal(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, str) and not (value.isidentifier() and value not in WORDS):
        return f'"{value}"' if "'" in value else f"'{value}'"
    return repr(value) if isinstance(value, float) else str(value)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[Token] = []
        at = 0
        while text[at:].strip():
            match = TOKEN.match(text, at)
            if match is None:
                start = at + len(text[at:]) - len(text[at:].lstrip())
                raise _error(text, start, "this cannot start a name, a number, a string or a window")
            assert match.lastgroup is not None
            self.tokens.append(Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
            at = match.end()
        self.tokens.append(Token("end", "the end", len(text)))
        self.next = 0

    def whole(self) -> Node:
        node = self.pruner()
        self.take("end", "nothing more")
        return node

    def pruner(self) -> Node:
        name = self.take("name", "the name of a pruner")
        if self.peek().text != "(":
            return Node(name.at, name.text)
        self.next += 1
        arguments: list[tuple[Token | None, Node]] = []
        while self.peek().text != ")":
            if arguments:
                self.take_mark(",", "a comma or a closing bracket")
            arguments.append(self.argument())
        self.next += 1
        return Node(name.at, name.text, tuple(arguments), called=True)

    def argument(self) -> tuple[Token | None, Node]:
        if self.peek().kind == "name" and self.tokens[self.next + 1].text == "=":
            key = self.take("name", "")
            self.next += 1
            return key, self.values()
        return None, self.values()

    def values(self) -> Node:
        first = self.value()
        others = []
        while self.peek().text == "|":
            self.next += 1
            others.append(self.value())
        return Node(first.at, grid=(first, *others)) if others else first

    def value(self) -> Node:
        token = self.peek()
        if token.kind == "name":
            return self.pruner()
        self.next += 1
        if token.kind == "number":
            integer = token.text.lstrip("-").isdigit()
            return Node(token.at, value=int(token.text) if integer else float(token.text))
        if token.kind == "range":
            return Node(token.at, value=token.text)  # a window, if the field takes one
        if token.kind == "string":
            return Node(token.at, value=token.text[1:-1])
        raise _error(self.text, token.at, "expected a value")

    def peek(self) -> Token:
        return self.tokens[self.next]

    def take(self, kind: str, expected: str) -> Token:
        token = self.peek()
        if token.kind != kind:
            raise _error(self.text, token.at, f"expected {expected}")
        self.next += 1
        return token

    def take_mark(self, mark: str, expected: str) -> None:
        if self.peek().text != mark:
            raise _error(self.text, self.peek().at, f"expected {expected}")
        self.next += 1


def _without_grids(node: Node) -> list[Node]:
    """A node for every combination of its grids' values; those of the last grid change fastest."""
    if node.grid:
        return [single for value in node.grid for single in _without_grids(value)]
    keys = [key for key, _ in node.arguments]
    combinations = itertools.product(*(_without_grids(value) for _, value in node.arguments))
    return [dataclasses.replace(node, arguments=tuple(zip(keys, values, strict=True))) for values in combinations]


def _build(text: str, node: Node, known: dict[str, CatalogEntry]) -> Pruner:
    assert node.name is not None
    try:
        entry = find(node.name, known)
    except CatalogError as error:
        raise _error(text, node.at, str(error)) from error
    cls = plugins.load(entry)
    fields = [f for f in dataclasses.fields(cls) if not f.metadata.get("learned")]
    hints = typing.get_type_hints(cls)
    given: dict[str, Any] = {}
    for key, value in node.arguments:
        name = key.text if key else fields[0].name if fields and not given else None
        at = key.at if key else value.at
        if name is None:
            raise _error(text, at, "only the first argument may stand without a name; write name=value")
        if name in given:
            raise _error(text, at, f"{name!r} is given twice")
        if name not in [f.name for f in fields]:
            raise _error(text, at, _no_parameter(node.name, name, [f.name for f in fields]))
        given[name] = _convert(text, value, hints[name], known)
    missing = [f.name for f in fields if f.name not in given and f.default is dataclasses.MISSING]
    if missing:
        raise _error(text, node.at, f"{node.name} needs {', '.join(missing)}: {node.name}({missing[0]}=…)")
    try:
        return cls(**given)
    except PruneBoardError as error:
        raise _error(text, node.at, str(error)) from error


def _convert(text: str, node: Node, hint: Any, known: dict[str, CatalogEntry]) -> Any:
    """A node's value as a field of type `hint` takes it."""
    options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    value: Any = node.value
    if node.name is not None:
        if node.name in WORDS and not node.called:
            value = WORDS[node.name]
        elif any(isinstance(o, type) and issubclass(o, Pruner) for o in options):
            value = _build(text, node, known)
        elif not node.called:
            value = node.name
        else:
            raise _error(text, node.at, f"expected {_describe(hint)}, not a pruner with arguments")
    if Window in options and isinstance(value, (str, int)) and not isinstance(value, bool):
        try:
            value = Window.parse(str(value))
        except PruneBoardError as error:
            raise _error(text, node.at, str(error)) from error
    try:
        adapter = pydantic.TypeAdapter(hint, config=pydantic.ConfigDict(arbitrary_types_allowed=True, strict=True))
        return adapter.validate_python(value)
    except pydantic.ValidationError as error:
        raise _error(text, node.at, f"expected {_describe(hint)}, not {_literal(value)}") from error


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


def _error(text: str, at: int, message: str) -> ExpressionError:
    return ExpressionError(f"cannot read this pruner at character {at + 1}: {message}\n  {text}\n  {' ' * at}^")
