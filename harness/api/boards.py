"""Results submitted, checked, measured again, shown on a board, and what they advise."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.api.arguments import Say, nobody
from harness.api.measure import load_run
from harness.runs.results import Results

if TYPE_CHECKING:
    from harness.advice.advise import Advice
    from harness.progress import Progress
    from harness.submissions.problems import Problem
    from harness.submissions.report import ValidationReport
    from harness.submissions.reproduce import Reproduction
    from harness.submissions.submit import Submitted


def submit(folder: Path | str, submitter: str, **options: Any) -> list[Submitted]:
    """Write a run's results as submissions, one a method; `harness/submissions/submit.py` has the options."""
    from harness.submissions.submit import submit as run

    return run(Path(folder), submitter, **options)


def validate(
    path: Path | str | None = None, *, against: Path | None = None, by: str | None = None, maintainer: bool = False
) -> ValidationReport:
    """Check a submission, a folder of them, or all of the project's own, as the leaderboard does."""
    from harness.submissions import validation
    from harness.submissions.folder import own_folder

    target = Path(path) if path else own_folder("name a submission or a folder of submissions")
    return validation.validate_below(target, against, validation.ChangeBy(by, maintainer))


def reproduce(
    ids: Sequence[str] | None = None,
    *,
    submissions: Path | str | None = None,
    pruner: Path | str | None = None,
    backbone: str | None = None,
    data: Path | str | None = None,
    out: Path | str | None = None,
    store: Path | str | None = None,
    workers: int | None = None,
    sandbox: str = "on",
    readable: Sequence[Path | str] = (),
    sample: int | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Iterator[Reproduction]:
    """Measure stored submissions again from scratch (None: all that were measured), and compare ranking by ranking.

    `harness reproduce --help` explains options. What came out is given one by one; `record(by)` of one is to be signed.
    """
    import tempfile

    from harness.progress import quiet
    from harness.submissions.folder import find_submissions, own_folder
    from harness.submissions.reproduce import reproduce as run
    from harness.submissions.rerun import Given, measured
    from pruners.core.errors import PruneBoardError
    from pruners.guests.host import Isolation

    folder = Path(submissions) if submissions else own_folder("name a folder with submissions=…")
    if not folder.is_dir():
        raise PruneBoardError(f"{folder} is no folder of submissions")
    known = {path.stem: path for path in find_submissions(folder)}
    if ids is not None and (unknown := [name for name in ids if name not in known]):
        raise PruneBoardError(f"{folder} has no submission {unknown[0]}")
    chosen = measured(known.values()) if ids is None else [known[name] for name in ids]
    given = Given(backbone, Path(data) if data else None, Path(pruner) if pruner else None)
    apart = Isolation(sandbox, tuple(map(Path, readable)))
    with tempfile.TemporaryDirectory(prefix="pruneboard-") as scratch:
        yield from run(
            chosen,
            given,
            Path(out or scratch),
            store=Path(store) if store else None,
            workers=workers or os.cpu_count() or 1,
            apart=apart,
            sample=sample,
            progress=progress or quiet,
            say=say or nobody,
        )


@dataclass(frozen=True)
class Site:
    """A leaderboard that was built."""

    index: Path
    submissions: int
    pages: int
    bytes: int
    left_out: list[Problem]
    """Why some submissions are not on it."""


def leaderboard(
    out: Path | str = "site",
    *,
    submissions: Path | str | None = None,
    runs: Sequence[Path | str | Results] = (),
    base_url: str | None = None,
    publish: bool = False,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Site:
    """Build the leaderboard, a static site, of a folder of submissions (the project's own) and of runs beside them.

    With `publish` the folder has what GitHub Pages and a static Hugging Face Space ask for.
    """
    from harness.progress import quiet
    from harness.submissions.folder import in_checkout, own_folder
    from leaderboard.gather import gather
    from leaderboard.site import build

    folders = [run.folder if isinstance(run, Results) else Path(run) for run in runs]
    if submissions is None and folders and not in_checkout():
        (say or nobody)("your runs alone: the project's submissions lie in its repository")
        shown = None
    else:
        hint = "show runs of your own with --runs, or name a folder with --submissions"
        shown = Path(submissions) if submissions else own_folder(hint)
    found = gather(shown, folders)
    built = build(found, Path(out), base_url, progress or quiet, publish=publish, drawn=True)
    return Site(Path(out) / "index.html", built.submissions, built.pages, built.size, built.left_out)


def advise(
    run: Results | Path | str | None = None,
    *,
    board: str | None = None,
    keep: float = 98.0,
    pages: float = 1e6,
    max_gb: float | None = None,
    max_ms: float | None = None,
    scan: float | None = None,
    vectors_only: bool = False,
    submissions: Path | str | None = None,
    progress: Progress | None = None,
) -> Advice:
    """The cheapest method, budget and codec whose lower bound keeps `keep` % of NDCG@5; print it, or read its fields.

    Of a run, or of a board: `board="vidore-v2/colqwen2"`, from the project's submissions or another folder of them.
    """
    from harness.advice import advise as advice
    from harness.advice.cost import measure_rate
    from harness.advice.rule import Asked
    from harness.progress import quiet
    from pruners.core.errors import PruneBoardError

    if (run is None) == (board is None):
        raise PruneBoardError("name either a run (--run FOLDER) or a board (--board vidore-v2/colqwen2)")
    if not 0 < keep <= 100:
        raise PruneBoardError(
            f"--keep is a share of the full model's NDCG@5 in %, above 0 and at most 100, not {keep:g}"
        )
    for name, value in (("pages", pages), ("max-gb", max_gb), ("max-ms", max_ms), ("scan", scan)):
        if value is not None and not 0 < value < float("inf"):
            raise PruneBoardError(f"--{name} is a number above 0, not {value:g}")
    if board is not None:
        from harness.submissions.folder import own_folder
        from leaderboard.advice import find_view, view_basis, view_candidates

        folder = Path(submissions) if submissions else own_folder("name a folder with --submissions, or a --run")
        view = find_view(board, folder, progress or quiet)
        rows, basis = list(view_candidates(view)), view_basis(view)
    else:
        from harness.advice.from_run import run_basis, run_candidates

        results = run if isinstance(run, Results) else load_run(str(run))
        with (progress or quiet)("intervals of the run", total=1, done=0) as advance:
            rows, basis = list(run_candidates(results)), run_basis(results)
            advance(1)
    asked = Asked(keep, pages, max_gb, max_ms, vectors_only)
    return advice.advise(rows, basis, asked, measure_rate, scan)
