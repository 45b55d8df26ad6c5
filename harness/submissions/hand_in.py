"""A run folder handed in: its submissions are made, written where they belong, and earlier ones taken back if asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pydantic

from harness.submissions.entry import SubmissionError, own_folder
from harness.submissions.finished_run import FinishedRun
from harness.submissions.schema import Origin, Track
from harness.submissions.submit import WantedMethods, make
from harness.submissions.write import remove_earlier, write, write_benchmark


@dataclass(frozen=True)
class Submitted:
    """A submission on disk."""

    method: str
    id: str
    file: Path
    new: bool
    """False if the same was there before: it stays as it is."""
    replaces: list[str]
    kilobytes: float


def hand_in(
    folder: Path,
    submitter: str,
    *,
    methods: Sequence[str] = (),
    paper: str | None = None,
    code: str | None = None,
    note: str = "",
    backbone_name: str | None = None,
    track: str | None = None,
    reproduces: str | None = None,
    replace: str | None = None,
    date: str | None = None,
    out: Path | str | None = None,
) -> list[Submitted]:
    """One submission for each of `methods` (none: all), in the folder `out` (None: the project's own).

    `replace` is the reason for which the submitter's earlier submissions of the same are taken back.
    """
    day = date or datetime.now(UTC).date().isoformat()
    fields = {"submitter": submitter, "paper": paper, "code": code, "note": note, "submitted": day}
    try:
        origin = Origin.model_validate(fields)
        chosen = None if track is None else Track(track)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        option = {"submitted": "date"}.get(str(first["loc"][0]), first["loc"][0])
        raise SubmissionError(Path(f"--{option}"), [("", first["msg"])]) from error
    except ValueError as error:
        raise SubmissionError(Path("--track"), [("", f"{track!r} is none of {', '.join(Track)}")]) from error
    home, run = Path(out) if out else own_folder("name a folder with --out"), FinishedRun(folder)
    write_benchmark(run, home)
    done = []
    for made in make(run, WantedMethods(origin, tuple(methods), backbone_name, chosen, reproduces)):
        path, new = write(made, home)
        gone = remove_earlier(made.submission, home, replace, origin.submitted) if replace else []
        size = (len(made.per_query) + len(made.kept) + path.stat().st_size) / 1000
        done.append(Submitted(made.submission.method.name, made.submission.id, path, new, gone, round(size, 1)))
    return done
