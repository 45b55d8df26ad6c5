"""The folder of submissions: where files lie, how they are read, what may lie there and what may not change.

Everything that is read here comes from outside.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import pydantic
from pydantic import Field, RootModel

from harness.submissions.problems import Notes, SubmissionError, printable
from harness.submissions.schema import Slug, Strict, Submission, Text
from pruners.core.errors import PruneBoardError

FOLDER = Path(__file__).parents[2] / "submissions"
"""The project's own, in a checkout."""
MAX_JSON = 4 * 2**20
MOST_KEYS = 2000  # of one object
MOST_PROBLEMS = 50  # said of one file
REMOVED = "removed.json"
PINS = "pins.json"
VERIFIED = "verified.json"
MEASURED_AGAIN = "measured-again.json"
ROOT_FILES = {"README.md", "schema.json", PINS, VERIFIED, MEASURED_AGAIN, REMOVED}
BENCHMARK = "benchmark.json"
FULL = "full.json"
BENCHMARK_FILES = {BENCHMARK, "pages.parquet", "qrels.parquet"}
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


def in_checkout() -> bool:
    """Whether the project's own submissions are here: an installed package does not bring them."""
    return (FOLDER / "schema.json").is_file()


def own_folder(instead: str) -> Path:
    """The project's own submissions; without a checkout, an error that says what to do `instead`."""
    if not in_checkout():
        raise PruneBoardError(
            f"the project's submissions lie in its repository, not in an installed package: {instead}"
        )
    return FOLDER


def submission_path(submission: Submission) -> Path:
    """Where a submission belongs, below the folder of submissions."""
    s = submission
    return Path(s.benchmark.name) / s.backbone.name / s.method.name / f"{s.id}.json"


def read_submission(path: Path) -> Submission:
    """The submission in a JSON file; if it is none, everything that is wrong with it at once."""
    return read_model(path, Submission)


def find_submissions(folder: Path) -> list[Path]:
    """All submissions below a folder, in a fixed order."""
    return sorted(folder.glob("*/*/*/*.json"))


def read_model(path: Path, model: type[pydantic.BaseModel]) -> Any:
    """A file from outside as a pydantic model: of bounded size, without repeated keys or numbers that are none."""
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise SubmissionError(path, [("", "is a link, or no file: links are not followed")])
        if path.stat().st_size > MAX_JSON:
            raise SubmissionError(path, [("", f"the file has more than {MAX_JSON // 2**20} MB")])
        text = path.read_bytes()
        json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number, parse_float=_finite)
        return model.model_validate_json(text)
    except OSError as error:
        raise SubmissionError(path, [("", f"cannot be read: {error.strerror}")]) from error
    except pydantic.ValidationError as error:
        every = error.errors(include_url=False, include_context=False)
        found = [(".".join(map(str, e["loc"])), _sentence(e)) for e in every[:MOST_PROBLEMS]]
        if len(every) > MOST_PROBLEMS:
            found.append(("", f"and {len(every) - MOST_PROBLEMS} problems more"))
        raise SubmissionError(path, [(printable(where), what) for where, what in found]) from error
    except (ValueError, RecursionError) as error:  # also JSONDecodeError, UnicodeDecodeError
        raise SubmissionError(path, [("", f"is no valid JSON: {printable(str(error))}")]) from error


def _sentence(error: Any) -> str:
    given = error["input"]  # of which an object or a list may be long, and says nothing
    shown = type(given).__name__ if isinstance(given, dict | list) else repr(given)
    given = "" if error["type"] == "missing" else f"; it is {printable(shown, 60)}"
    return f"{error['msg'][0].lower()}{error['msg'][1:]}{given}"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MOST_KEYS:
        raise ValueError(f"an object has {len(pairs)} keys; at most {MOST_KEYS} are read")
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} occurs twice")
    return found


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{printable(text, 40)} is no number that a computer holds")
    return value


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number")


def to_json(model: pydantic.BaseModel) -> bytes:
    """As it is written: what is at its default is left out."""
    fields = model.model_dump(mode="json", exclude_defaults=True)
    return (json.dumps(fields, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def find_root(path: Path) -> Path:
    """The folder of submissions that a file or a folder belongs to: the one whose folders are benchmarks."""
    path = path.resolve()
    for folder in (path, *path.parents[:4]):
        if folder.is_dir() and any(folder.glob(f"*/{BENCHMARK}")):
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


def check_tree(root: Path, about: About) -> None:
    """Every file has a place; removed submissions are gone."""
    submissions = find_submissions(root)
    named = {path.with_suffix(ending) for path in submissions for ending in ENDINGS}
    for path in sorted(root.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            continue
        depth = len(path.relative_to(root).parts)
        places = {1: ROOT_FILES, 2: BENCHMARK_FILES, 3: {Path(FULL).with_suffix(ending).name for ending in ENDINGS}}
        if path.is_symlink():
            about(path).error("path", "is a link; links are not followed", "put the file itself there")
        elif not (path in named or path.name in places.get(depth, ())):
            about(path).error("path", "does not belong here", "remove it; submissions are data of a stated form")
    removed = _removals(root, about)
    for path in submissions:
        if path.stem in removed:
            about(path).error("id", f"{REMOVED} says that it is gone", "remove the files, or the line")


@dataclass(frozen=True)
class ChangeBy:
    """Who proposes a change; nobody in particular may only add."""

    account: str | None = None
    maintainer: bool = False

    def owns(self, submission: Submission) -> bool:
        return self.maintainer or (self.account is not None and self.account == submission.origin.account)


def check_history(root: Path, base: Path, by: ChangeBy, about: About) -> None:
    """Against the state before: what was there stays, unless who submitted it, or a maintainer, says otherwise."""
    removed, before = _removals(root, about), _removals(base, lambda path: Notes(path, []))
    here = {path.stem for path in find_submissions(root)}
    notes, earlier = about(root / REMOVED), find_submissions(base)
    for path in earlier:
        where, now = path.relative_to(base), root / path.relative_to(base)
        if path.stem in here:
            if _changed(path, now) and not by.owns(theirs := read_submission(path)):
                owner = theirs.origin.account or "a maintainer"
                about(now).error("origin", "its words were changed", f"only {owner} may do that")
        elif path.stem not in removed:
            notes.error(
                path.stem, f"{where} was removed or changed without a reason", "list its id here, with a reason"
            )
        elif not by.owns(theirs := read_submission(path)):
            what = f"{where} is another's: it was submitted by {printable(theirs.origin.submitter)}"
            notes.error(path.stem, what, f"only {theirs.origin.account or 'a maintainer'} may take it back")
    for gone in sorted(before):
        if removed.get(gone) != before[gone] and not by.maintainer:
            notes.error(gone, "was listed as removed before", "leave it in the list as it is: old links lead to it")
    _check_new(root, earlier, by, about)
    _check_maintained(root, base, by, about)


def _check_new(root: Path, earlier: Sequence[Path], by: ChangeBy, about: About) -> None:
    """Nobody submits in another's name: neither under an account, nor under a name that others have submitted under."""
    if by.account is None or by.maintainer:
        return
    known = {path.stem for path in earlier}
    origins = [read_submission(path).origin for path in earlier]
    own = {origin.submitter.casefold() for origin in origins if origin.account == by.account}
    taken = {origin.submitter.casefold() for origin in origins} - own
    for path in find_submissions(root):
        if path.stem in known:
            continue
        try:
            origin = read_submission(path).origin
        except SubmissionError:
            continue  # said where it was checked
        if origin.account not in (None, by.account):
            about(path).error("origin.account", f"is in the name of {printable(origin.account)}", "name your own")
        elif origin.submitter.casefold() in taken:
            what = f"{printable(origin.submitter)} has submitted before, and not by the account {printable(by.account)}"
            about(path).error("origin.submitter", what, "choose a name of your own, or let that account submit")


def _check_maintained(root: Path, base: Path, by: ChangeBy, about: About) -> None:
    """Pins and what they hold are changed by maintainers; a benchmark's record only grows, by who measures first."""
    full = [path.relative_to(base) for ending in ENDINGS for path in base.glob(f"*/*/{Path(FULL).with_suffix(ending)}")]
    for name in [Path(PINS), Path(VERIFIED), Path(MEASURED_AGAIN), *full]:
        if _changed(base / name, root / name) and not by.maintainer:
            about(root / name).error("", "was changed: pinning and verifying are a maintainer's acts", "restore it")
    for old in sorted(path for name in BENCHMARK_FILES for path in base.glob(f"*/{name}")):
        new = root / old.relative_to(base)
        first = old.name == BENCHMARK and not (old.parent / "qrels.parquet").exists() and new.exists()
        if _changed(old, new) and not first and not by.maintainer:  # `first`: nobody had measured, so hashes are added
            what = "a pinned benchmark changed, on which others were measured"
            about(new).error("", what, "restore it; other data is another benchmark, with another name")


def _changed(old: Path, new: Path) -> bool:
    """Whether a file is another than before; what is a link, or no file, is not opened."""
    if new.is_symlink() or not (old.is_file() and new.is_file()):
        return new.is_symlink() or old.exists() != new.exists()
    return old.read_bytes() != new.read_bytes()


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
