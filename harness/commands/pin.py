"""`harness pin`: a maintainer vouches for data and a full model; the work is in `harness/submissions/pins.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.console import people


def pin(
    id_: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="A submission whose data and full model are pinned; or a report of verify-backbone (a .json file).",
        ),
    ],
    by: Annotated[str, typer.Option(help="The maintainer who compared the data with its source.")],
    date: Annotated[str | None, typer.Option(help="The day, as 2026-11-17. Default: today.")] = None,
    submissions: Annotated[Path | None, typer.Option(help="Folder of submissions. Default: the project's own.")] = None,
) -> None:
    """Pin the data and the full model that a submission was measured with. For maintainers.

    Until then everything measured there is shown without a rank. Compare the data with its source first: measure it
    yourself, or look at pages and qrels. Who pinned what, and when, is kept in submissions/pins.json.

    A report of `harness verify-backbone --out FILE` is signed in submissions/verified.json, and shown on the board.
    """
    from datetime import UTC, datetime

    from harness.submissions.folder import find_submissions, own_folder
    from harness.submissions.pins import pin as pin_it
    from harness.submissions.validation import validate
    from harness.submissions.verified import record
    from pruners.core.errors import PruneBoardError

    folder = submissions or own_folder("name a folder with --submissions")
    try:
        day = datetime.now(UTC).date() if date is None else datetime.strptime(date, "%Y-%m-%d").date()
    except ValueError as error:
        raise PruneBoardError(f"--date is a day such as 2026-11-17, not {date}") from error
    if id_.endswith(".json"):
        signed = record(folder, Path(id_), by, day)
        people.print(f"recorded: {signed.backbone}, {signed.summary}", soft_wrap=True, markup=False)
        return
    path = next((path for path in find_submissions(folder) if path.stem == id_), None)
    if path is None:
        raise PruneBoardError(f"{folder} has no submission {id_}")
    report = validate(folder, [path])
    wrong = [problem for problem in report.problems if problem.level == "error"]
    if wrong or not report.entries or report.entries[0].scores is None or not report.entries[0].is_complete(1.0):
        why = f"{wrong[0].field}: {wrong[0].what}" if wrong else "it has not every data set, or no rankings"
        raise PruneBoardError(f"{id_} cannot be pinned: {why}")
    done = pin_it(folder, path, by, day)
    people.print(f"pinned: {', '.join(done)}; by {by}, {day}", soft_wrap=True, markup=False)
