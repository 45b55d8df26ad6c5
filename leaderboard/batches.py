"""A batch of views from its submissions to its files, or from the last build if nothing that it reads has changed."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from harness.cache import user_cache
from harness.submissions.problems import Problem
from harness.submissions.schema import BenchmarkFacts
from leaderboard.gather import Batch
from leaderboard.pages import SitePages
from leaderboard.views import View, make_views
from leaderboard.words import file_name


@dataclass(frozen=True)
class BuiltBatch:
    """Files of a batch, its views without per-query figures, and what was left out."""

    stamp: str | None
    files: dict[str, bytes]
    views: tuple[View, ...]
    submissions: int
    left_out: tuple[Problem, ...]


def build_batch(batch: Batch, pinned: Mapping[str, BenchmarkFacts], pages: SitePages, again: bool = True) -> BuiltBatch:
    """Files and views of a batch. `again`: whether what an earlier build kept may be used."""
    stamp = batch.stamp()
    stamp = stamp and hashlib.sha256(f"{stamp} {_code()} {pages.stamp}".encode()).hexdigest()
    place = user_cache() / "site" / f"{file_name(batch.name)}.pickle"
    if stamp and again and (kept := _kept(place, stamp)):
        return kept
    entries, left_out = batch.load()
    found, light = {}, []
    for view in make_views(entries, pinned):
        pairs, made = pages.of_view(view)
        found.update(made)
        light.append(view.light(pairs.gaps()))
    built = BuiltBatch(stamp, found, tuple(light), len(entries), tuple(left_out))
    if stamp and again:
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_suffix(f".{stamp[:12]}.part")
        part.write_bytes(pickle.dumps(built))
        part.replace(place)
    return built


def _kept(place: Path, stamp: str) -> BuiltBatch | None:
    """What an earlier build of the same files by the same code left in the user's own cache."""
    try:
        found = pickle.loads(place.read_bytes())
    except (OSError, EOFError, pickle.UnpicklingError, AttributeError, ImportError, TypeError):
        return None
    return found if isinstance(found, BuiltBatch) and found.stamp == stamp else None


@cache
def _code() -> str:
    """Changes with the code that makes figures and pages."""
    digest = hashlib.sha256()
    for package in ("leaderboard", "harness.submissions", "harness.metrics", "pruners"):
        root = Path(str(files(package)))
        for path in sorted(root.rglob("*")):
            if path.suffix in (".py", ".j2", ".csv", ".json"):
                digest.update(f"{path.relative_to(root)}:".encode() + path.read_bytes())
    return digest.hexdigest()
