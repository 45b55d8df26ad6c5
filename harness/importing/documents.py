"""PDFs read for what they ask: their outlines, and which of their pages are tables of contents. Nothing is drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.importing.contents import contents_pages
from harness.importing.headings import Heading, headings
from harness.importing.pdf import PdfError, opened, outline, page_text
from harness.importing.report import ImportReport
from harness.importing.sources import DocumentSource
from harness.progress import Progress


@dataclass(frozen=True)
class Document:
    """A readable PDF: its headings, its pages, and which of these are left out as tables of contents."""

    source: DocumentSource
    headings: tuple[Heading, ...]
    pages: int
    digest: str
    contents: frozenset[int] = frozenset()

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(heading.key for heading in self.headings)


def read_documents(
    sources: Sequence[DocumentSource], keep_contents_pages: bool, report: ImportReport, progress: Progress
) -> list[Document]:
    """Every PDF that can be used; of the others the report says why not."""
    documents: list[Document] = []
    seen: dict[str, str] = {}
    with progress("outlines", total=len(sources), done=0) as advance:
        for source in sources:
            try:
                documents.append(_read(source, keep_contents_pages, seen))
            except PdfError as error:
                report.skipped[source.name] = str(error)
            advance(1)
    return documents


def _read(source: DocumentSource, keep_contents_pages: bool, seen: dict[str, str]) -> Document:
    if not source.is_pdf:
        raise PdfError("it is an image and has no outline")
    digest = hashlib.sha256(source.path.read_bytes()).hexdigest()
    if digest in seen:
        raise PdfError(f"it is the same file as {seen[digest]}")
    seen[digest] = source.name
    with opened(source.path) as pdf:
        entries = outline(pdf)
        if not entries:
            raise PdfError("it has no outline")
        document = Document(source, tuple(headings(entries)), len(pdf), digest)
        if keep_contents_pages:
            return document
        texts = (_text_if_readable(pdf, page) for page in range(len(pdf)))
        return replace(document, contents=contents_pages(texts, document.keys))


def _text_if_readable(pdf: Any, page: int) -> str:
    """The text of a page; one that cannot be read is no table of contents, and is named when it is drawn."""
    try:
        return page_text(pdf, page)
    except PdfError:
        return ""
