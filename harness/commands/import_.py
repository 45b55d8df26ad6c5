"""`harness import`: one's own pages as a benchmark. Only options and what a person sees; the work is next door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from harness.console import output, people


def import_pages(
    sources: Annotated[
        list[Path], typer.Argument(help="A folder of PDFs or images; with --queries outline also PDF files.")
    ],
    out: Annotated[Path, typer.Option(help="The benchmark folder to make.")],
    queries: Annotated[
        str, typer.Option(help="labels (queries.jsonl and qrels.tsv in the folder), or outline (the PDFs' own).")
    ] = "labels",
    dpi: Annotated[int, typer.Option(help="Resolution at which PDF pages are drawn.")] = 144,
    ocr: Annotated[bool, typer.Option("--ocr", help="Read the text of scanned pages with RapidOCR.")] = False,
    keep_contents_pages: Annotated[
        bool, typer.Option("--keep-contents-pages", help="Outline: keep tables of contents.")
    ] = False,
    min_words: Annotated[int, typer.Option(help="Outline: words a heading needs to be a query.")] = 2,
    pairs: Annotated[
        int | None, typer.Option(help="Outline: only so many (query, page) pairs, drawn: a calibration set.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Turn PDFs or images into a benchmark in ViDoRe's layout, labelled by you or by the PDFs' own outlines.

    Bad rows of labels are told all at once. Whatever goes wrong, no half-written folder remains.
    """
    import harness
    from harness.importing.problems import ImportProblemsError
    from harness.progress import bar, quiet

    try:
        report = harness.import_pages(
            sources,
            out,
            queries=queries,
            dpi=dpi,
            ocr=ocr,
            keep_contents_pages=keep_contents_pages,
            min_words=min_words,
            pairs=pairs,
            progress=quiet if as_json else bar,
        )
    except ImportProblemsError as error:
        if as_json:
            print(json.dumps({"problems": [vars(problem) for problem in error.problems]}, indent=1))
        raise
    if as_json:
        print(json.dumps({"folder": str(out), **report.as_dict()}, indent=1, ensure_ascii=False))
        return
    for line in report.lines():
        people.print(escape(line), soft_wrap=True)
    output.print(f"benchmark: {escape(str(out))}", soft_wrap=True)
