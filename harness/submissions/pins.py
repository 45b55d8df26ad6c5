"""Pins: what a maintainer vouches for, with a name and a day, in `submissions/pins.json`.

A benchmark is pinned when its data was compared with its source: the checksums of its record are kept. On a pinned
benchmark the full model of a backbone is pinned once, as a submission of budget 1.0 alone:

    submissions/<benchmark>/<backbone>/full.json, full.parquet, full.kept.parquet

Everybody's vectors of a full page and full model are held against it. What nobody pinned is shown without a rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow.compute as pc
from pydantic import Field, RootModel

from harness import parquet
from harness.files import alone_with, checksum, file_checksum, write_atomically
from harness.metrics.results_table import WHOLE, ResultsTable
from harness.submissions.folder import BENCHMARK_FILES, FULL, PINS, read_model, read_submission, to_json
from harness.submissions.problems import Notes, SubmissionError, printable
from harness.submissions.schema import Hash, MethodFacts, Slug, Strict, Submission, Track, Word, content_id, with_id
from harness.submissions.tables import KEPT, PER_QUERY, kept_path, per_query_path
from pruners.core.errors import PruneBoardError

FULL_METHOD = MethodFacts(name="full", expression="full", title="The full model", track=Track.subset)
SAME_BACKBONE = ("checkpoint", "revision", "kind", "profile", "dim")
FULL_WITHIN = 0.01
"""NDCG@5, mean over a data set's queries of the difference: another machine may move a last digit."""


class Pin(Strict):
    """Who vouches, and since when."""

    by: Word
    """The maintainer."""
    on: Annotated[date, Field(strict=False)]
    """The day."""


class FullModelPin(Pin):
    """The full model of a backbone on a benchmark."""

    id: Slug
    """Of `full.json`."""
    source: Slug
    """The submission that it was taken from."""


class BenchmarkPin(Pin):
    """A benchmark's record."""

    files: dict[Word, Hash]
    """Checksums of its files."""
    full_models: dict[Slug, FullModelPin] = Field(default_factory=dict)
    """By backbone."""


class Pins(RootModel[dict[Slug, BenchmarkPin]]):
    """By benchmark."""


@dataclass(frozen=True)
class PinnedFullModel:
    """A pinned full model, read and computed again."""

    submission: Submission
    scores: ResultsTable
    vectors: Mapping[str, str]
    """Data set -> digest of the vectors of each page."""


def read_pins(root: Path, notes: Notes) -> dict[str, BenchmarkPin]:
    """What is pinned in a folder of submissions; nothing if the file cannot be read, which is said."""
    path = root / PINS
    if not path.exists() and not path.is_symlink():
        return {}
    try:
        return read_model(path, Pins).root
    except SubmissionError as error:
        for where, what in error.problems:
            notes.error(where, what, "`harness pin` writes it")
        return {}


def check_pinned_files(home: Path, pin: BenchmarkPin, notes: Notes) -> None:
    """The files of a pinned benchmark are those that were looked at."""
    for name, known in pin.files.items():
        if name not in BENCHMARK_FILES or not (home / name).is_file() or file_checksum(home / name) != known:
            notes.error(printable(name), "is not the file that was pinned: its checksum differs", "restore it")


def check_full_model(
    submission: Submission, scores: ResultsTable, vectors: Mapping[str, str], full: PinnedFullModel
) -> str:
    """Why the full model of a submission is not the pinned one, as `field: reason`; empty if it is."""
    for what in SAME_BACKBONE:
        mine, theirs = getattr(submission.backbone, what), getattr(full.submission.backbone, what)
        if mine != theirs:
            said = f"is {printable(mine)}, pinned is {printable(theirs)} for {submission.backbone.name}"
            return f"backbone.{what}: {said}: another backbone, with another name (--backbone-name)"
    for name, digest in vectors.items():
        if digest != full.vectors.get(name):
            return f"kept ({printable(name)} at 1): the vectors of a full page are not those of the pinned full model"
    for key in scores.queries:
        if key.budget == WHOLE and key in full.scores.queries:
            gap = float(np.abs(scores.per_query(key) - full.scores.per_query(key)).mean())
            if gap > FULL_WITHIN:
                said = f"the full model ranks otherwise than the pinned one: {100 * gap:.1f} points of NDCG@5 a query"
                return f"cells ({printable(key[0])} at 1): {said}; look at dtype, query template and profile"
    return ""


def with_full_model(
    submission: Submission, scores: ResultsTable, full: PinnedFullModel
) -> tuple[Submission, ResultsTable]:
    """A submission relative to the pinned full model, so that nobody gains by a weaker one of his own."""
    known = {(c.data_set, c.language): c for c in full.submission.cells}
    cells = tuple(
        cell.model_copy(update={"ndcg": known[cell.data_set, cell.language].ndcg}) if cell.budget == 1.0 else cell
        for cell in submission.cells
    )
    theirs = {key: measures for key, measures in full.scores.measures.items() if key.budget == WHOLE}
    measures = {key: theirs.get(key, mine) for key, mine in scores.measures.items()}
    return submission.model_copy(update={"cells": cells}), ResultsTable(scores.queries, measures)


def pin(root: Path, path: Path, by: str, day: date) -> list[str]:
    """Pin the benchmark of a submission, and its full model; what was done, in words. It must be without errors."""
    with alone_with(root):
        return _pin(root, path, by, day)


def _pin(root: Path, path: Path, by: str, day: date) -> list[str]:
    submission, notes = read_submission(path), Notes(root / PINS, [])
    benchmark, backbone = submission.benchmark.name, submission.backbone.name
    pins, home, done = read_pins(root, notes), root / submission.benchmark.name, []
    if not notes.clean:
        raise SubmissionError(root / PINS, [(p.field, p.what) for p in notes.found])
    files = {name: file_checksum(home / name) for name in sorted(BENCHMARK_FILES) if (home / name).is_file()}
    if len(files) != len(BENCHMARK_FILES):
        raise PruneBoardError(f"{home} has no {min(BENCHMARK_FILES - files.keys())}: nothing was measured there yet")
    if benchmark not in pins:
        pins[benchmark] = BenchmarkPin(by=by, on=day, files=files)
        done.append(f"the benchmark {benchmark}")
    known = pins[benchmark].full_models
    if backbone in known:
        theirs = known[backbone]
        raise PruneBoardError(
            f"{backbone} on {benchmark} was pinned by {theirs.by} on {theirs.on}, from {theirs.source}; "
            f"to pin another, remove it from {PINS} first"
        )
    full = write_full_model(submission, path, home / backbone / FULL)
    done.append(f"the full model of {backbone} on {benchmark}, from {submission.id}")
    known = {**known, backbone: FullModelPin(by=by, on=day, id=full.id, source=submission.id)}
    pins[benchmark] = pins[benchmark].model_copy(update={"full_models": known})
    write_atomically(root / PINS, to_json(Pins(dict(sorted(pins.items())))))
    return done


def write_full_model(submission: Submission, path: Path, target: Path) -> Submission:
    """The part of a submission that is the full model, as a submission of its own."""
    tables = {}
    for name, file, form in (("per_query", per_query_path, PER_QUERY), ("kept", kept_path, KEPT)):
        table = parquet.read(file(path), form, optional=("score_retention",))
        table = table.filter(pc.equal(table["budget"], 1.0))
        tables[name] = parquet.pack({column: table[column].to_pylist() for column in form}, form)
        write_atomically(file(target), tables[name])
    cells = tuple(cell for cell in submission.cells if cell.budget == 1.0)
    hashes = {name: checksum(data) for name, data in tables.items()}
    changes = {"method": FULL_METHOD, "cells": cells, "claim": "self-reported", "reproduces": None, **hashes}
    full = with_id(submission.model_copy(update=changes))
    write_atomically(target, to_json(full))
    return full


def read_full_model(path: Path, pin: FullModelPin, notes: Notes) -> Submission | None:
    """The pinned full model's file, if it is the one that was pinned."""
    try:
        submission = read_submission(path)
    except SubmissionError as error:
        for where, what in error.problems:
            notes.error(where, what, "restore the file that `harness pin` wrote")
        return None
    if not (submission.id == pin.id == content_id(submission)):
        notes.error("id", f"is not the full model that was pinned: that is {pin.id}", "restore it")
        return None
    return submission
