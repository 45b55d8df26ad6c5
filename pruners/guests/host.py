"""What a user names, or gives as an object, becomes pruners: built-in ones as they are, all others as guests.

A file that declares methods is not run here: its decorators are read from its text, and a process of its own runs it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pruners.core import expression, identity, plugins, source
from pruners.core.by_value import packed
from pruners.core.catalog import expressions
from pruners.core.codec import Codec
from pruners.core.codec_catalog import codec_catalogue
from pruners.core.contract import Pruner
from pruners.core.errors import CatalogError, PruneBoardError
from pruners.core.plugins import CatalogEntry

from . import sandbox
from .guest import Guest, GuestFacts, read_answer
from .process import Home, ask

AUTO, ON, OFF = "auto", "on", "off"
MODES = (AUTO, ON, OFF)
"""Of the sandbox. `auto`: methods of files and packages are in one where it can be had, objects of a session not."""

BUILT_IN = "built-in"


@dataclass(frozen=True)
class Isolation:
    """How methods that are not built in are kept apart, beside a process of their own: it changes no number."""

    sandbox: str = AUTO
    readable: tuple[Path, ...] = ()
    """Files and folders that a method in a sandbox may read."""

    def __post_init__(self) -> None:
        if self.sandbox not in MODES:
            raise PruneBoardError(f"a sandbox is {', '.join(MODES)}, not {self.sandbox!r}")

    def limits(self, least: str, files: Sequence[Path] = ()) -> tuple[str, ...] | None:
        """What methods may read in a sandbox, with their own `files`; None: they are in none.

        They are in one if that is asked for; under `auto` where there is one, unless `least` is on.
        """
        if self.sandbox == OFF or (self.sandbox == AUTO and least == ON):
            return None
        reason = sandbox.missing()
        if self.sandbox == ON and reason:
            raise PruneBoardError(f"there is no sandbox here: {reason}. --sandbox off runs methods without one")
        return None if reason else tuple(sorted({str(path.resolve()) for path in (*files, *self.readable)}))


USUAL = Isolation()


def is_built_in(pruner: Pruner) -> bool:
    """Whether it and all its parts are the project's own."""
    own = type(pruner).__module__.startswith("pruners.") and not isinstance(pruner, Guest)
    return own and all(map(is_built_in, pruner.parts()))


def host(
    selectors: Sequence[str], own: Sequence[Pruner] = (), apart: Isolation = USUAL
) -> list[tuple[Pruner, Codec | None]]:
    """Pruners of texts, each with its codec if the text names one; then those given as objects."""
    texts, known = expressions(selectors)
    found: list[tuple[Pruner, Codec | None]] = []
    for text in texts:
        names = expression.names(text)
        strangers = [entry for name, entry in known.items() if name in names and entry.source != BUILT_IN]
        if strangers:
            found += _guests(text, strangers, known, apart)
        else:
            found += expression.read(text, known, codec_catalogue(), _load_own)
    return [*found, *((each if is_built_in(each) else _by_value(each, apart), None) for each in own)]


def _load_own(entry: CatalogEntry) -> Any:
    """Whatever a text says, nobody else's code runs in this process."""
    if entry.source != BUILT_IN:
        raise CatalogError(f"{entry.name} of {entry.place} is not built in, and runs in a process of its own only")
    return plugins.load(entry)


def _guests(
    text: str, strangers: Sequence[CatalogEntry], known: Mapping[str, CatalogEntry], apart: Isolation
) -> list[tuple[Pruner, Codec | None]]:
    """The pruners of a text that names methods of files or packages, with their codecs."""
    files = sorted({entry.file.resolve() for entry in strangers if entry.module is None})
    read = {file: source.with_imports(file, file.parent) for file in files}
    packages = sorted({entry.source for entry in strangers if entry.module is not None})
    diagnostic = any(entry.decorator == "diagnostic" for entry in strangers)
    limits = apart.limits(AUTO, [inner for each in read.values() for inner in each])
    home = Home((*map(str, files), *packages), diagnostic, limits)
    asked = {"do": "read", "text": text, "files": list(map(str, files)), "who": text}
    answer, states = ask(home, None, "", asked, {})
    described = read_answer(answer, states, text)
    own = [source.fingerprint(inner, file.parent) for file, inner in read.items()]
    for facts, _ in described:
        _refuse_other_names(facts, text, known)
    brought: dict[str, Any] = {"files": tuple(file.name for file in files), "packages": tuple(packages)}
    if len(files) == 1 and not packages:
        inside = files[0].parent
        texts = ((path.relative_to(inside).as_posix(), path.read_text("utf-8", "replace")) for path in read[files[0]])
        brought |= {"texts": tuple(texts), "source_hash": own[0]}
    pruners = _with_partners(described, home, lambda facts: sorted({*facts.codes, *own}), **brought)
    return list(zip(pruners, _codecs(answer, text, len(pruners)), strict=True))


def _codecs(answer: Mapping[str, Any], text: str, count: int) -> list[Codec | None]:
    """The codecs that a process read in a text, made here: its own word is not enough."""
    known, words = codec_catalogue(), set(re.findall(r"[^\W\d]\w*", text))
    found: list[Codec | None] = []
    said = answer.get("codecs")
    for name in said if isinstance(said, list) else []:
        codec, *_ = [None] if name is None else expression.read_codecs(str(name), known)
        if codec is not None and codec.name not in words:
            raise CatalogError(f"{text}: its process says that it is stored as {codec}, which is not what was asked")
        found.append(codec)
    if len(found) != count:
        raise CatalogError(f"{text}: its process describes {count} pruners, and {len(found)} codecs")
    return found


def _by_value(pruner: Pruner, apart: Isolation) -> Pruner:
    """An object of this session, whose code is in this process already, to be run in another."""
    home = Home((), pruner.declaration.diagnostic, apart.limits(ON))
    asked = {"do": "load", "who": str(pruner)}
    data = {"state": np.frombuffer(packed(pruner), np.uint8)}
    described = read_answer(*ask(home, None, "", asked, data), str(pruner))
    codes = identity.codes(pruner)
    return _with_partners(described, home, lambda facts: codes, files=tuple(files_that_declare(pruner)))[0]


def _with_partners(
    described: Sequence[tuple[GuestFacts, bytes]],
    home: Home,
    codes: Callable[[GuestFacts], Sequence[str]],
    **brought: Any,
) -> list[Pruner]:
    """Guests; a partner is described right after the pruner whose it is."""
    found: list[Guest] = []
    for facts, state in described:
        made = Guest(facts, state, home, tuple(codes(facts)), **brought)
        if facts.is_partner and found:
            found[-1] = Guest(**{**found[-1].fields(), "beside": made})
        else:
            found.append(made)
    return list(found)


def no_sandbox(pruners: Sequence[Pruner]) -> str | None:
    """What a reader must know where methods of files could not be shut in."""
    free = [
        str(each) for each in pruners if isinstance(each, Guest) and each.home.readable is None and each.home.sources
    ]
    reason = sandbox.missing()
    if not free or not reason:
        return None
    return (
        f"no sandbox for {', '.join(free)}: {reason}. In processes of their own they see no queries, but can read files"
    )


def _refuse_other_names(facts: GuestFacts, text: str, known: Mapping[str, CatalogEntry]) -> None:
    """A process may not pass its method off as another one."""
    name = str(facts.declaration.get("name"))
    entry = known.get(name)
    alone = re.fullmatch(rf"{re.escape(name)}(\(.*\))?", facts.text, re.DOTALL)
    if facts.is_partner:
        return
    if entry is None or not alone or not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text):
        raise CatalogError(
            f"{text}: its process says that it is {facts.text!r} ({name}), which its file does not declare"
        )
    if (entry.decorator == "diagnostic") != bool(facts.declaration.get("diagnostic")):
        raise CatalogError(f"{text}: its file and its process do not agree whether it is a diagnostic")


def files_that_declare(pruner: Pruner) -> list[str]:
    """The names of the users' files that declare an object or a part of it."""
    modules = [sys.modules[type(part).__module__] for part in identity.all_parts(pruner)]
    found = [Path(str(module.__file__)).name for module in modules if plugins.FINGERPRINT in vars(module)]
    return list(dict.fromkeys(found))
