"""The catalogue of pruners, and the way from what a user types to pruner instances.

`catalogue()` lists what there is without importing any method; `resolve()` turns names, expressions and files into
instances, importing only what they name.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import plugins
from .codec_catalog import codec_catalogue
from .errors import CatalogError
from .plugins import CatalogEntry

if TYPE_CHECKING:
    from .codec import Codec
    from .contract import Pruner

GROUP = "pruneboard.pruners"
DECORATORS = ("scorer", "reducer", "diagnostic", "pruner", "preset")
FORMULA = "Formula:"


def catalogue(files: Iterable[Path] = ()) -> dict[str, CatalogEntry]:
    """Every pruner by name: built in, installed, and declared in the given files."""
    entries = [
        *plugins.scan_package("pruners", Path(__file__).resolve().parents[1], DECORATORS),
        *plugins.scan_entry_points(GROUP, DECORATORS),
        *(entry for file in files for entry in scan(file)),
    ]
    return plugins.unique(entries)


def scan(file: Path) -> list[CatalogEntry]:
    """The pruners a user's file declares: at least one."""
    entries = plugins.scan_file(file.resolve(), DECORATORS)
    if not entries:
        wanted = ", ".join(f"@{name}" for name in DECORATORS[:2])
        raise CatalogError(f"{file} declares no pruner: decorate a top-level function with {wanted} from `pruners`")
    return entries


def kind(entry: CatalogEntry) -> str:
    """What comes out of a method, and how its budget behaves: "subset, fixed"."""
    output = entry.options.get("output", "merged" if entry.decorator == "reducer" else "subset")
    budget = entry.options.get("budget", "fixed")
    return f"{output}, {budget}" + (" (diagnostic)" if entry.decorator == "diagnostic" else "")


def words(entry: CatalogEntry) -> list[str]:
    """The paragraphs of a method's docstring, without its formula."""
    return [" ".join(part.split()) for part in _paragraphs(entry) if not part.startswith(FORMULA)]


def formula(entry: CatalogEntry) -> list[str]:
    """What a method computes: the lines below `Formula:` in its docstring."""
    found = [part.removeprefix(FORMULA) for part in _paragraphs(entry) if part.startswith(FORMULA)]
    return [line.strip() for part in found for line in part.splitlines() if line.strip()]


def _paragraphs(entry: CatalogEntry) -> list[str]:
    return [part for part in entry.doc.split("\n\n") if part.strip()]


def find(name: str, known: dict[str, CatalogEntry], what: str = "pruner") -> CatalogEntry:
    """The entry of that name; an unknown one suggests the nearest."""
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(near)}?" if near else f"; `harness list {what}s` shows what there is"
    raise CatalogError(f"there is no {what} {name!r}{hint}")


def resolve(selectors: Sequence[str]) -> list[Pruner]:
    """Pruners from what a user typed, each `name`, `name(param=value)`, `file.py` or `file.py:name(param=value)`.

    A file adds its methods to the names that the other selectors may use; alone, it stands for all of them, and
    `file.py(param=value)` for the only one. `name(param=1|2|3)` stands for three pruners.
    """
    found = resolve_stored(selectors)
    if stored := next((f"{pruner} | {codec}" for pruner, codec in found if codec is not None), None):
        raise CatalogError(f"{stored!r} says how vectors are stored; here only a pruner is expected")
    return [pruner for pruner, _ in found]


def resolve_stored(selectors: Sequence[str]) -> list[tuple[Pruner, Codec | None]]:
    """The same with codecs: `sap | int8`. None: the text names no codec."""
    from . import expression

    texts, known = expressions(selectors)
    codecs = codec_catalogue()
    return [each for text in texts for each in expression.read(text, known, codecs)]


def expressions(selectors: Sequence[str]) -> tuple[list[str], dict[str, CatalogEntry]]:
    """What a user typed as texts without files, and the names that these may use. No file is run for it."""
    split = [_split(selector) for selector in selectors]
    known = catalogue(dict.fromkeys(file for file, _ in split if file))
    found: list[str] = []
    for file, text in split:
        if file and not text:
            found += [entry.name for entry in scan(file)]
        elif file and text.startswith("("):
            found.append(_only_name(file) + text)
        else:
            found.append(text)
    return found, known


def parse(text: str) -> Pruner:
    """One pruner from its text form."""
    found = resolve([text])
    if len(found) != 1:
        raise CatalogError(f"{text!r} names {len(found)} pruners where one is expected: {', '.join(map(str, found))}")
    return found[0]


def _only_name(file: Path) -> str:
    names = [entry.name for entry in scan(file)]
    if len(names) != 1:
        raise CatalogError(f"{file} declares {', '.join(names)}: write which one, as in {file}:{names[0]}(…)")
    return names[0]


def _split(selector: str) -> tuple[Path | None, str]:
    if not selector.strip():
        raise CatalogError("an empty text names no pruner; `harness list pruners` shows what there is")
    return plugins.file_and_rest(selector)
