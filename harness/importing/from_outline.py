"""A benchmark without labelling: PDFs whose own outline asks the questions.

First every document is read for its outline and its contents pages (text only), then the chosen pages are drawn and
written one at a time. What was left out, and why, is in the `Report`.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PIL import Image

from harness.encode import image_hash
from harness.importing.contents import contents_pages, is_contents_page
from harness.importing.headings import MIN_WORDS, Heading, Questions, headings, questions
from harness.importing.ocr import needs_ocr
from harness.importing.pdf import PdfError, opened, outline, page_image, page_text
from harness.importing.report import Report
from harness.importing.sources import Source, find_sources, page_id
from harness.importing.writing import PageWriter, new_folder, png, write_labels, write_readme
from harness.progress import Progress, quiet
from pruners.core.apply import SEED
from pruners.core.errors import PruneBoardError

DPI = 144


@dataclass(frozen=True)
class Settings:
    """How PDFs become a benchmark. `pairs`: only so many (query, page) pairs and their pages, for calibration."""

    dpi: int = DPI
    min_words: int = MIN_WORDS
    keep_contents_pages: bool = False
    pairs: int | None = None
    seed: int = SEED

    def __post_init__(self) -> None:
        if not 36 <= self.dpi <= 600:
            raise PruneBoardError(f"--dpi {self.dpi} is not between 36 and 600")
        if self.min_words < 1 or (self.pairs is not None and self.pairs < 1):
            raise PruneBoardError("--min-words and --pairs are at least 1")


@dataclass(frozen=True)
class Document:
    """A readable PDF: its headings, its pages, and which of these are tables of contents."""

    source: Source
    headings: tuple[Heading, ...]
    pages: int
    contents: frozenset[int]
    digest: str

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(heading.key for heading in self.headings)


def import_outlines(
    places: Sequence[Path],
    out: Path,
    settings: Settings,
    ocr: Callable[[Image.Image], str] | None = None,
    progress: Progress = quiet,
) -> Report:
    """Make the benchmark folder `out` of the PDFs in `places`."""
    report = Report()
    documents = _read_documents(find_sources(places), settings, report, progress)
    if not documents:
        reasons = "; ".join(f"{name}: {why}" for name, why in report.skipped.items())
        raise PruneBoardError(f"no PDF with an outline can be read, so there are no queries. {reasons}")
    asked = questions([document.headings for document in documents], settings.min_words)
    report.short_headings, report.pointless_headings = asked.short, asked.pointless
    wanted = _wanted_pages(documents, asked, settings)
    with new_folder(out) as folder:
        ids = _write_pages(folder, documents, wanted, settings, ocr, report, progress)
        queries, qrels = _resolve(asked, ids, wanted, report)
        if not queries:
            raise PruneBoardError(
                f"no heading of {len(documents)} PDFs gives a query of at least {settings.min_words} words; "
                "try --min-words 1, or write queries.jsonl and qrels.tsv"
            )
        write_labels(folder, queries, {}, qrels)
        report.pages, report.queries, report.qrels = len(set(ids.values())), len(queries), len(qrels)
        write_readme(folder, out.resolve().name, report.lines(), _record(documents, settings, ocr is not None, report))
    return report


def _read_documents(
    sources: Sequence[Source], settings: Settings, report: Report, progress: Progress
) -> list[Document]:
    """Every document that can be used; the others are named with a reason."""
    documents: list[Document] = []
    seen: dict[str, str] = {}
    with progress("outlines", total=len(sources), done=0) as advance:
        for source in sources:
            advance(1)
            if not source.is_pdf:
                report.skipped[source.name] = "it is an image and has no outline"
                continue
            digest = hashlib.sha256(source.path.read_bytes()).hexdigest()
            if digest in seen:
                report.skipped[source.name] = f"it is the same file as {seen[digest]}"
                continue
            seen[digest] = source.name
            try:
                documents.append(_read_document(source, digest, settings))
            except PdfError as error:
                report.skipped[source.name] = str(error)
    return documents


def _read_document(source: Source, digest: str, settings: Settings) -> Document:
    with opened(source.path) as pdf:
        entries = outline(pdf)
        if not entries:
            raise PdfError("it has no outline")
        found = tuple(headings(entries))
        document = Document(source, found, len(pdf), frozenset(), digest)
        if settings.keep_contents_pages:
            return document
        contents = contents_pages((_text_or_none(pdf, page) for page in range(len(pdf))), document.keys)
        return replace(document, contents=contents)


def _text_or_none(pdf: Any, page: int) -> str:
    """The text of a page; a page that cannot be read is no table of contents, and is named when it is drawn."""
    try:
        return page_text(pdf, page)
    except PdfError:
        return ""


def _wanted_pages(documents: Sequence[Document], asked: Questions, settings: Settings) -> dict[tuple[int, int], Any]:
    """The pages to import, in order: all, or those of some drawn pairs. The value tells which queries may use a page."""
    every = [(d, page) for d, document in enumerate(documents) for page in range(document.pages)]
    if settings.pairs is None:
        return dict.fromkeys(every)
    pairs = [
        (place, key) for key, places in asked.gold.items() for place in places if place[1] not in documents[place[0]].contents
    ]
    drawn = random.Random(settings.seed).sample(pairs, min(settings.pairs, len(pairs)))
    chosen: dict[tuple[int, int], set[str]] = {}
    for place, key in drawn:
        chosen.setdefault(place, set()).add(key)
    return {place: chosen[place] for place in every if place in chosen}


def _write_pages(
    folder: Path,
    documents: Sequence[Document],
    wanted: dict[tuple[int, int], Any],
    settings: Settings,
    ocr: Callable[[Image.Image], str] | None,
    report: Report,
    progress: Progress,
) -> dict[tuple[int, int], str]:
    """Draw and write pages; for each the id under which it is in the corpus. A page seen before keeps its first id."""
    ids: dict[tuple[int, int], str] = {}
    first: dict[str, str] = {}
    writer = PageWriter(folder)
    with progress("pages", total=len(wanted), done=0) as advance:
        for d, document in enumerate(documents):
            with opened(document.source.path) as pdf:
                for page in (page for number, page in wanted if number == d):
                    advance(1)
                    if page in document.contents:
                        report.contents_pages += 1
                        continue
                    name = page_id(document.source, page)
                    try:
                        image, text = page_image(pdf, page, settings.dpi), page_text(pdf, page)
                    except PdfError as error:
                        report.unreadable_pages[name] = str(error)
                        continue
                    if image.getextrema() == tuple((low, low) for low, _ in image.getextrema()):
                        report.blank_pages += 1
                        continue
                    if ocr is not None and needs_ocr(text):
                        text, report.ocr_pages = ocr(image), report.ocr_pages + 1
                        if not settings.keep_contents_pages and is_contents_page(text, document.keys):
                            report.contents_pages += 1
                            continue
                    digest = image_hash(image)
                    if digest in first:
                        report.duplicate_pages += 1
                    else:
                        first[digest] = name
                        report.textless_pages += not text.strip()
                        writer.add(name, png(image), None, text)
                    ids[d, page] = first[digest]
    writer.close()
    return ids


def _resolve(
    asked: Questions, ids: dict[tuple[int, int], str], wanted: dict[tuple[int, int], Any], report: Report
) -> tuple[dict[str, str], dict[tuple[str, str], int]]:
    """Queries that still have a gold page, numbered, and their judgements."""
    queries: dict[str, str] = {}
    qrels: dict[tuple[str, str], int] = {}
    for key, text in asked.queries.items():
        places = [place for place in asked.gold[key] if place in wanted and (wanted[place] is None or key in wanted[place])]
        if not places:
            continue  # not among the drawn pairs
        gold = sorted({ids[place] for place in places if place in ids})
        if not gold:
            report.lost_queries += 1
            continue
        query = f"q{len(queries) + 1:05d}"
        queries[query] = text
        qrels |= {(query, page): 1 for page in gold}
    return queries, qrels


def _record(documents: Sequence[Document], settings: Settings, ocr: bool, report: Report) -> dict[str, Any]:
    return {
        "queries": "outline",
        "dpi": settings.dpi,
        "min_words": settings.min_words,
        "keep_contents_pages": settings.keep_contents_pages,
        "pairs": settings.pairs,
        "seed": settings.seed if settings.pairs is not None else None,
        "ocr": ocr,
        "files": {document.source.name: f"sha256-{document.digest}" for document in documents},
        "found": report.as_dict(),
    }
