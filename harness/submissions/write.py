"""Writing submissions where they belong: whole or not at all, the same content as the same bytes, and never twice."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pydantic

from harness.files import write_atomically
from harness.submissions import pinned
from harness.submissions.entry import SubmissionError, read_submission, submission_path
from harness.submissions.folder import ENDINGS, REMOVED, Removal, Removals, read_removals
from harness.submissions.rows import kept_path, per_query_path
from harness.submissions.schema import BenchmarkFacts, Submission

if TYPE_CHECKING:
    from harness.submissions.finished_run import FinishedRun
    from harness.submissions.submit import NewSubmission


def to_json(model: pydantic.BaseModel) -> bytes:
    """As it is written: what is at its default is left out."""
    fields = model.model_dump(mode="json", exclude_defaults=True)
    return (json.dumps(fields, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def write(made: NewSubmission, folder: Path) -> tuple[Path, bool]:
    """Put a submission where it belongs; the JSON file goes last. Whether it is new: one that is there stays."""
    path = folder / submission_path(made.submission)  # named by its content
    if all(path.with_suffix(ending).exists() for ending in ENDINGS):
        return path, False
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(per_query_path(path), made.per_query)
    write_atomically(kept_path(path), made.kept)
    write_atomically(path, to_json(made.submission))
    return path, True


def write_benchmark(run: FinishedRun, folder: Path) -> Path:
    """Pin the run's benchmark beside its submissions, or see that the pinned one is the same."""
    ours = run.pinned()
    home = folder / ours.benchmark.name
    if (home / pinned.FILE).exists():
        theirs = pinned.read_pinned(home)
        _check_same(ours, theirs, home)
        if theirs.judged:
            return home
        names = list(theirs.data_sets)  # figures were reported before anyone measured: keep the order
        ordered = tuple(ours.data_sets.get(name, theirs.data_sets[name]) for name in names)
        ours = pinned.Pinned(BenchmarkFacts(name=ours.benchmark.name, data_sets=ordered), ours.judged)
    home.mkdir(parents=True, exist_ok=True)
    for name in ("pages.parquet", "qrels.parquet"):
        write_atomically(home / name, (run.files.folder / "benchmark" / name).read_bytes())
    write_atomically(home / pinned.FILE, to_json(ours.benchmark))
    return home


def remove_earlier(submission: Submission, folder: Path, reason: str, day: date) -> list[str]:
    """Take back what the same submitter measured of the same before: listed with the reason first, then removed."""
    home = (folder / submission_path(submission)).parent
    earlier = [
        path
        for path in sorted(home.glob("*.json"))
        if path.stem != submission.id and _is_by(read_submission(path), submission.origin.submitter)
    ]
    if earlier:
        known = read_removals(folder)
        gone = {path.stem: Removal(removed=day, reason=reason) for path in earlier}
        write_atomically(folder / REMOVED, to_json(Removals({**known, **gone})))
    for path in earlier:
        for ending in ENDINGS:
            path.with_suffix(ending).unlink(missing_ok=True)
    return [path.stem for path in earlier]


def _is_by(submission: Submission, submitter: str) -> bool:
    return submission.claim != "reported" and submission.origin.submitter == submitter


def _check_same(ours: pinned.Pinned, theirs: pinned.Pinned, home: Path) -> None:
    for name, data_set in ours.data_sets.items():
        known = theirs.data_sets.get(name)
        if known is None:
            raise SubmissionError(home / pinned.FILE, [(name, "is no data set of the benchmark that is pinned here")])
        for what, value in known.model_dump().items():
            mine = getattr(data_set, what)
            if value not in (None, ()) and value != mine:
                raise SubmissionError(
                    home / pinned.FILE,
                    [(f"{name}.{what}", f"{value} is pinned, the run has {mine}; give it a benchmark of another name")],
                )
