"""From what a user types after `--backbone` to a loaded backbone, through the same plugin scan as the pruners'.

    colqwen2                              a built-in or installed backbone, its default checkpoint at the pinned commit
    colqwen2=path-or-id@revision          the same loader, another checkpoint
    mteb:id, st:id                        a model of mteb or sentence-transformers, for its vectors alone
    my_retriever.py[:name][=checkpoint]   a file of one's own

Listing imports nothing; only the chosen backbone's module is executed.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from pathlib import Path

from harness.backbones.contract import Backbone, Options
from harness.backbones.recipe import BackboneRecipe, with_recipe
from pruners.core import plugins
from pruners.core.errors import CatalogError
from pruners.core.plugins import CatalogEntry

GROUP = "pruneboard.backbones"
DECORATORS = ("backbone",)
_OTHER_LIBRARY = re.compile(r"(?P<library>mteb|st):(?P<id>.+)")


@dataclass(frozen=True)
class BackboneChoice:
    """A backbone as chosen: which loader, which checkpoint, which revision."""

    entry: CatalogEntry
    checkpoint: str
    revision: str | None


def catalogue(file: Path | None = None) -> dict[str, CatalogEntry]:
    """Every backbone by name: built in, installed, and declared in the given file."""
    entries = [
        *plugins.scan_package("harness.backbones", Path(__file__).parent, DECORATORS),
        *plugins.scan_entry_points(GROUP, DECORATORS),
        *(plugins.scan_file(file.resolve(), DECORATORS) if file else []),
    ]
    return plugins.unique(entries)


def choose(selector: str) -> BackboneChoice:
    """Read a selector; nothing is imported or loaded."""
    if (other := _OTHER_LIBRARY.fullmatch(selector)) is not None:
        checkpoint, revision = _revision(other["id"]) if not Path(other["id"]).exists() else (other["id"], None)
        return BackboneChoice(catalogue()[other["library"]], checkpoint, revision)
    left, _, right = selector.partition("=")
    file, name = plugins.file_and_rest(left)
    known = catalogue(file)
    if file is not None and not name:
        declared = [entry.name for entry in plugins.scan_file(file.resolve(), DECORATORS)]
        if len(declared) != 1:
            what = f"declares {', '.join(declared)}: add :name" if declared else "declares none: decorate a loader"
            raise CatalogError(f"{file} must declare one backbone with @backbone(...), but {what}")
        (name,) = declared
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(known))}"
        raise CatalogError(f"there is no backbone {name!r}; {hint}")
    checkpoint, revision = (right, None) if Path(right).exists() else _revision(right)
    facts = known[name].options
    if not checkpoint and not facts["checkpoint"]:
        form = f"{name}:owner/name" if name in ("mteb", "st") else f"{name}=FOLDER or {name}=owner/name"
        raise CatalogError(f"{name} has no default checkpoint; name one: {form}")
    if not checkpoint:
        return BackboneChoice(known[name], facts["checkpoint"], revision or facts.get("revision"))
    return BackboneChoice(known[name], checkpoint, revision)


def load(selector: str, options: Options | None = None) -> Backbone:
    """Load the chosen backbone. Models load their weights when they encode, not here."""
    choice, asked = choose(selector), options or Options()
    loaded = plugins.load(choice.entry)(choice.checkpoint, replace(asked, revision=choice.revision))
    return with_recipe(loaded, BackboneRecipe(selector, asked))


def load_again(recipe: BackboneRecipe) -> Backbone:
    """What was loaded elsewhere by this recipe."""
    loaded = load(recipe.selector, recipe.options)
    if recipe.attention_from is None:
        return loaded
    from harness.backbones.attention_source import with_attention_from

    return with_attention_from(loaded, recipe.attention_from)


def is_default(entry: CatalogEntry, checkpoint: str, revision: str) -> bool:
    """Whether this is the checkpoint that a backbone's name alone means.

    A commit, or the hash of a folder's files, says what was read, whatever it is called (of an adapter its own counts);
    only where none is pinned does the name.
    """
    if pinned := entry.options.get("revision"):
        return revision.partition("+")[0] == pinned
    return checkpoint.partition(" ")[0] == entry.options["checkpoint"]


def _revision(text: str) -> tuple[str, str | None]:
    checkpoint, at, revision = text.rpartition("@")
    return (checkpoint, revision) if at else (text, None)
