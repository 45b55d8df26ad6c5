"""A folder of images and PDFs with `queries.jsonl` and `qrels.tsv`: checked as a whole, then written as a benchmark.

Someone labelled these pages, so nothing is dropped or merged: whatever cannot be taken as it is, is a problem, and all
problems are told at once before anything is written.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from harness.benchmarks.content import image_hash
from harness.importing.labels import QRELS, QUERIES, Labels, read_labels
from harness.importing.ocr import needs_ocr
from harness.importing.pdf import PdfError, opened, page_image, page_text
from harness.importing.problems import ImportProblem, ImportProblemsError
from harness.importing.report import ImportReport
from harness.importing.sources import DocumentSource, find_sources, page_id
from harness.importing.writing import PageWriter, new_folder, png, write_labels, write_readme
from harness.progress import Progress, quiet
from pruners.core.errors import PruneBoardError

CANNOT_DECODE = (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError)


def has_labels(folder: Path) -> bool:
    return folder.is_dir() and ((folder / QUERIES).exists() or (folder / QRELS).exists())


def import_labelled(
    folder: Path,
    out: Path,
    dpi: int,
    ocr: Callable[[Image.Image], str] | None = None,
    progress: Progress = quiet,
) -> ImportReport:
    """Make the benchmark folder `out` of a labelled folder, or tell all that is wrong with it."""
    if out.resolve().is_relative_to(folder.resolve()):
        raise PruneBoardError(f"--out {out} lies inside {folder}; its pictures would be imported next time")
    report = ImportReport()
    labels = read_labels(folder)
    sources = find_sources([folder])
    problems = list(labels.problems)
    with new_folder(out) as unfinished:
        writer = PageWriter(unfinished)
        pages: set[str] = set()
        seen: set[str] = set()
        with progress("files", total=len(sources), done=0) as advance:
            for source in sources:
                try:
                    for page, encoded, image, text in _pages(source, dpi):
                        pages.add(page)
                        digest = image_hash(image)
                        report.duplicate_pages += digest in seen
                        seen.add(digest)
                        if ocr is not None and needs_ocr(text):
                            text, report.ocr_pages = ocr(image), report.ocr_pages + 1
                        report.textless_pages += source.is_pdf and not text.strip()
                        writer.add(page, encoded, None if source.is_pdf else source.name, text)
                except PdfError as error:
                    problems.append(ImportProblem(source.name, None, str(error)))
                except CANNOT_DECODE as error:
                    problems.append(ImportProblem(source.name, None, f"the image cannot be decoded ({error})"))
                advance(1)
        writer.close()
        broken = {problem.file for problem in problems}
        problems += _missing_pages(labels, pages, broken)
        problems += _never_relevant(labels)
        if problems:
            raise ImportProblemsError(problems)
        write_labels(unfinished, labels.queries, labels.languages, labels.qrels)
        report.pages, report.queries, report.qrels = len(pages), len(labels.queries), len(labels.qrels)
        record = {"queries": QUERIES, "dpi": dpi, "ocr": ocr is not None, "found": report.as_dict()}
        write_readme(unfinished, out.resolve().name, report.lines(), record)
    return report


def _pages(source: DocumentSource, dpi: int) -> Iterator[tuple[str, bytes, Image.Image, str]]:
    """Id, encoded picture, picture and text of each page of a file. An image file's own bytes are kept as they are."""
    if source.is_pdf:
        with opened(source.path) as pdf:
            for index in range(len(pdf)):
                image = page_image(pdf, index, dpi)
                yield page_id(source, index), png(image), image, page_text(pdf, index)
        return
    encoded = source.path.read_bytes()
    yield source.name, encoded, Image.open(io.BytesIO(encoded)).convert("RGB"), ""


def _missing_pages(labels: Labels, pages: set[str], broken: set[str]) -> list[ImportProblem]:
    """Judgements of pages that are not there. A page of a file that is named as broken already is not told again."""
    problems = []
    for query, page in labels.qrels:
        if page not in pages and page.partition("#")[0] not in broken:
            what = f"there is no page {page!r}"
            if any(known.startswith(f"{page}#page=") for known in pages):
                what += f"; pages of a PDF are named {page}#page=1, {page}#page=2, …"
            problems.append(ImportProblem(QRELS, labels.rows[query, page], what))
    return problems


def _never_relevant(labels: Labels) -> Sequence[ImportProblem]:
    if labels.qrels and not any(labels.qrels.values()):
        return [ImportProblem(QRELS, None, "no page is relevant to any query: every score is 0")]
    return []
