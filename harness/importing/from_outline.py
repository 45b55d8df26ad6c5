"""A benchmark without labelling: PDFs whose own outline asks the questions.

Documents are read for their outlines first; then the chosen pages are drawn and written one at a time, and queries keep
those gold pages that were written. What was left out, and why, is in the `ImportReport`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from harness.benchmarks.content import image_hash
from harness.importing.contents import is_contents_page
from harness.importing.documents import Document, read_documents
from harness.importing.headings import MIN_WORDS, Questions, questions
from harness.importing.ocr import needs_ocr
from harness.importing.pdf import PdfError, opened, page_image, page_text
from harness.importing.report import ImportReport
from harness.importing.sources import find_sources, page_id
from harness.importing.writing import PageWriter, new_folder, png, write_labels, write_readme
from harness.progress import Progress, quiet
from pruners.core.errors import PruneBoardError
from pruners.core.seed import SEED

DPI = 144

Place = tuple[int, int]
"""A page: (document, index)."""
Ocr = Callable[[Image.Image], str]


@dataclass(frozen=True)
class OutlineSettings:
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


def import_outlines(
    sources: Sequence[Path], out: Path, settings: OutlineSettings, ocr: Ocr | None = None, progress: Progress = quiet
) -> ImportReport:
    """Make the benchmark folder `out` of the PDFs in `sources`."""
    report = ImportReport()
    documents = read_documents(find_sources(sources), settings.keep_contents_pages, report, progress)
    if not documents:
        reasons = "; ".join(f"{name}: {why}" for name, why in report.skipped.items())
        raise PruneBoardError(f"no PDF with an outline can be read, so there are no queries. {reasons}")
    asked = questions([document.headings for document in documents], settings.min_words)
    report.short_headings, report.pointless_headings = asked.short, asked.pointless
    places = [(d, page) for d, document in enumerate(documents) for page in range(document.pages)]
    if settings.pairs is not None:
        asked = _some_pairs(asked, documents, settings.pairs, settings.seed)
        drawn = {place for gold in asked.gold.values() for place in gold}
        places = [place for place in places if place in drawn]
    with new_folder(out) as folder:
        ids = _write_pages(folder, _draw(documents, places, settings, ocr, report, progress), report)
        queries, qrels = _label(asked, ids, report)
        if not queries:
            raise PruneBoardError(
                f"no heading of {len(documents)} PDFs gives a query of at least {settings.min_words} words; "
                "try --min-words 1, or write queries.jsonl and qrels.tsv"
            )
        write_labels(folder, queries, {}, qrels)
        report.pages, report.queries, report.qrels = len(set(ids.values())), len(queries), len(qrels)
        files = {document.source.name: f"sha256-{document.digest}" for document in documents}
        record = {"queries": "outline", **asdict(settings), "ocr": ocr is not None, "files": files}
        write_readme(folder, out.resolve().name, report.lines(), {**record, "found": report.as_dict()})
    return report


def _some_pairs(asked: Questions, documents: Sequence[Document], count: int, seed: int) -> Questions:
    """`count` of the (query, page) pairs, drawn; contents pages are gone already."""
    pairs = [
        (key, (d, page))
        for key, places in asked.gold.items()
        for d, page in places
        if page not in documents[d].contents
    ]
    drawn = set(random.Random(seed).sample(pairs, min(count, len(pairs))))
    gold: dict[str, list[Place]] = {}
    for key, place in pairs:
        if (key, place) in drawn:
            gold.setdefault(key, []).append(place)
    return Questions({key: asked.queries[key] for key in gold}, gold, asked.short, asked.pointless)


def _draw(
    documents: Sequence[Document],
    places: Sequence[Place],
    settings: OutlineSettings,
    ocr: Ocr | None,
    report: ImportReport,
    progress: Progress,
) -> Iterator[tuple[Place, str, Image.Image, str]]:
    """Place, id, picture and text of each page that belongs into the corpus."""
    with progress("pages", total=len(places), done=0) as advance:
        for d, document in enumerate(documents):
            with opened(document.source.path) as pdf:
                for page in (page for number, page in places if number == d):
                    name = page_id(document.source, page)
                    try:
                        drawn = None if page in document.contents else _draw_page(pdf, page, settings.dpi, ocr, report)
                    except PdfError as error:
                        report.unreadable_pages[name] = str(error)
                    else:
                        if drawn is None or _read_as_contents(drawn, document, settings, ocr):
                            report.contents_pages += 1
                        elif _is_blank(drawn[0]):
                            report.blank_pages += 1
                        else:
                            yield (d, page), name, *drawn
                    advance(1)


def _draw_page(pdf: Any, page: int, dpi: int, ocr: Ocr | None, report: ImportReport) -> tuple[Image.Image, str]:
    image, text = page_image(pdf, page, dpi), page_text(pdf, page)
    if ocr is not None and needs_ocr(text) and not _is_blank(image):
        text = ocr(image)
        report.ocr_pages += 1
    return image, text


def _read_as_contents(
    drawn: tuple[Image.Image, str], document: Document, settings: OutlineSettings, ocr: Ocr | None
) -> bool:
    """Whether OCR shows a page to be a table of contents, which its missing text layer could not."""
    return ocr is not None and not settings.keep_contents_pages and is_contents_page(drawn[1], document.keys)


def _is_blank(image: Image.Image) -> bool:
    return all(low == high for low, high in (channel.getextrema() for channel in image.split()))


def _write_pages(
    folder: Path, pages: Iterator[tuple[Place, str, Image.Image, str]], report: ImportReport
) -> dict[Place, str]:
    """Write the corpus; for each place the id its page has there. A page that looks like an earlier one is that one."""
    ids: dict[Place, str] = {}
    first: dict[str, str] = {}
    writer = PageWriter(folder)
    for place, name, image, text in pages:
        digest = image_hash(image)
        if digest in first:
            report.duplicate_pages += 1
        else:
            first[digest] = name
            report.textless_pages += not text.strip()
            writer.add(name, png(image), None, text)
        ids[place] = first[digest]
    writer.close()
    return ids


def _label(
    asked: Questions, ids: dict[Place, str], report: ImportReport
) -> tuple[dict[str, str], dict[tuple[str, str], int]]:
    """Queries that still have a gold page, numbered, and their judgements."""
    queries: dict[str, str] = {}
    qrels: dict[tuple[str, str], int] = {}
    for key, text in asked.queries.items():
        gold = dict.fromkeys(ids[place] for place in asked.gold[key] if place in ids)
        if not gold:
            report.lost_queries += 1
            continue
        query = f"q{len(queries) + 1:05d}"
        queries[query] = text
        qrels |= {(query, page): 1 for page in gold}
    return queries, qrels
