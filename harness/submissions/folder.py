"""The folder of submissions as a whole: what may lie in it, what was removed, and what may not change."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Annotated

from pydantic import Field, RootModel

from harness.parquet import TableError
from harness.submissions import manifest, pinned
from harness.submissions.entry import SubmissionError, find_submissions, printable, read_model
from harness.submissions.problems import Notes
from harness.submissions.schema import Slug, Strict, Text

REMOVED = "removed.json"
ROOT_FILES = {"README.md", "schema.json", REMOVED}
BENCHMARK_FILES = {pinned.FILE, "pages.parquet", "qrels.parquet"}
ENDINGS = (".json", ".kept.parquet", ".parquet")

About = Callable[[Path], Notes]


class Removal(Strict):
    """Why a submission is gone."""

    removed: Annotated[date, Field(strict=False)]
    """The day."""
    reason: Text
    """For readers who come by an old link."""


class Removals(RootModel[dict[Slug, Removal]]):
    """Ids that were once on the board."""


def find_root(path: Path) -> Path:
    """The folder of submissions that a file or a folder belongs to: the one whose folders are benchmarks."""
    path = path.resolve()
    for folder in (path, *path.parents[:4]):
        if folder.is_dir() and any(folder.glob(f"*/{pinned.FILE}")):
            return folder
    return path if path.is_dir() else path.parents[min(3, len(path.parents) - 1)]


def unsafe(path: Path, root: Path) -> str | None:
    """Why a path must not be opened: it, or a folder on the way to it, leads elsewhere."""
    home = None if path.is_relative_to(root) else root.resolve()  # named otherwise: look at what the names stand for
    for part in (path, *path.parents):
        if part == root or (home is not None and part.resolve() == home):
            break
        if part.is_symlink():
            return f"{printable(part.name)} is a link; links are not followed"
    if not path.is_file():
        return "is no file"
    return None


def checked_pinned(home: Path, notes: Notes) -> pinned.Pinned | None:
    """A benchmark's record, if it holds together."""
    for name in BENCHMARK_FILES:
        if (home / name).exists() and (reason := unsafe(home / name, home.parent)):
            notes.error(name, reason, "put the file itself there")
    if not notes.clean:
        return None
    try:
        found = pinned.read_pinned(home)
    except SubmissionError as error:
        for where, what in error.problems:
            notes.error(where, what, "`harness submit` writes it from a run")
        return None
    except TableError as error:
        notes.error("tables", str(error), "`harness submit` writes them from a run")
        return None
    if found.benchmark.name != home.name:
        notes.error("name", f"is {printable(found.benchmark.name)}, the folder is {printable(home.name)}", "mend one")
    for where, what in pinned.differences(found):
        notes.error(printable(where), printable(what, 200), "the tables were changed: restore them")
    known = manifest.differences(found.benchmark)
    for where, what in known or ():
        notes.error(printable(where), printable(what, 200), "measure on the known data, or name it otherwise")
    if known is None:
        notes.warn("name", "no benchmark of this name is known to the project", "a maintainer looks at its data first")
    return found if notes.clean else None


def check_tree(root: Path, about: About) -> None:
    """Every file has a place; removed submissions are gone."""
    submissions = find_submissions(root)
    named = {path.with_suffix(ending) for path in submissions for ending in ENDINGS}
    for path in sorted(root.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            continue
        depth = len(path.relative_to(root).parts)
        if not (
            path in named or (depth == 1 and path.name in ROOT_FILES) or (depth == 2 and path.name in BENCHMARK_FILES)
        ):
            about(path).error("path", "does not belong here", "remove it; submissions are data of a stated form")
    removed = _removals(root, about)
    for path in submissions:
        if path.stem in removed:
            about(path).error("id", f"{REMOVED} says that it is gone", "remove the files, or the line")


def check_history(root: Path, base: Path, about: About) -> None:
    """Against the state before: submissions go with a stated reason only, and pinned benchmarks do not change."""
    removed, before = _removals(root, about), _removals(base, lambda path: Notes(path, []))
    here = {path.stem for path in find_submissions(root)}
    notes = about(root / REMOVED)
    for path in find_submissions(base):
        if path.stem not in here and path.stem not in removed:
            where = path.relative_to(base)
            notes.error(
                path.stem, f"{where} was removed or changed without a reason", "list its id here, with a reason"
            )
    for gone in sorted(before.keys() - removed.keys()):
        notes.error(gone, "was listed as removed before", "leave it in the list: old links lead to it")
    for home in sorted(path.parent for path in base.glob(f"*/{pinned.FILE}")):
        _check_same_benchmark(home, root / home.name, about)


def _check_same_benchmark(before: Path, after: Path, about: About) -> None:
    has_tables = (before / "qrels.parquet").exists()
    for name in sorted(BENCHMARK_FILES):
        old, new = before / name, after / name
        if not old.exists() or (name == pinned.FILE and not has_tables and new.exists()):
            continue  # figures were reported before anyone measured: the first to measure adds hashes
        if not new.exists() or old.read_bytes() != new.read_bytes():
            what = "a pinned benchmark changed, on which others were measured"
            about(new).error("", what, "restore it; other data is another benchmark, with another name")


def read_removals(root: Path) -> dict[str, Removal]:
    """What is listed as gone."""
    path = root / REMOVED
    return read_model(path, Removals).root if path.exists() else {}


def _removals(root: Path, about: About) -> dict[str, Removal]:
    try:
        return read_removals(root)
    except SubmissionError as error:
        notes = about(root / REMOVED)
        for where, what in error.problems:
            notes.error(where, what, 'write {"<id>": {"removed": "2026-11-16", "reason": "…"}}')
        return {}
