"""`harness advise`: only options and what a person sees; the rule is in `harness/advice/rule.py`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.console import output, people

if TYPE_CHECKING:
    from harness.advice.rule import Candidate


def advise(
    run: Annotated[Path | None, typer.Option(help="A run folder of `harness evaluate`.")] = None,
    board: Annotated[str | None, typer.Option(help="Instead: a board, as vidore-v2/colqwen2.")] = None,
    keep: Annotated[float, typer.Option(help="NDCG@5 that must be kept, in % of the full model's.")] = 98.0,
    pages: Annotated[float, typer.Option(help="Pages of your corpus.")] = 1e6,
    max_gb: Annotated[float | None, typer.Option(help="The index may have so many GB (10^9 bytes).")] = None,
    max_ms: Annotated[float | None, typer.Option(help="A query's scan may take so long, on this machine.")] = None,
    scan: Annotated[
        float | None, typer.Option(help="Pages scored for a query, if a first stage (ANN) hands over so many only.")
    ] = None,
    vectors_only: Annotated[
        bool, typer.Option("--vectors-only", help="Leave out methods that read attention or the patch grid.")
    ] = False,
    submissions: Annotated[Path | None, typer.Option(help="Folder of submissions, for --board.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of words.")] = False,
) -> None:
    """Say which method, budget and codec to take: the cheapest whose lower 95 % bound keeps what is asked.

    With what it costs on your corpus, what fell and why, what the advice rests on and what it does not cover. Where
    nothing qualifies it says what would have to give.
    """
    import harness
    from harness.progress import bar

    found = harness.advise(
        run,
        board=board,
        keep=keep,
        pages=pages,
        max_gb=max_gb,
        max_ms=max_ms,
        scan=scan,
        vectors_only=vectors_only,
        submissions=submissions,
        progress=None if as_json else bar,
    )
    if as_json:
        print(json.dumps(found.record(), indent=2, ensure_ascii=False))
    else:
        output.print(str(found), soft_wrap=True, markup=False)
        if run is not None and found.chosen is not None and _can_be_indexed(run, found.chosen.candidate):
            row = found.chosen.candidate
            words = ["harness", "index", str(run), row.text, "--budget", str(row.budget), "--out", "index"]
            people.print(f"next: {shlex.join(words)}   writes it", soft_wrap=True, markup=False)


def _can_be_indexed(run: Path, row: Candidate) -> bool:
    import harness
    from harness.page_index.writer import usable
    from pruners.core.errors import PruneBoardError

    try:
        usable(harness.load_run(run), row.text, row.budget)
    except PruneBoardError:
        return False
    return True
