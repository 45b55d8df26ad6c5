"""Reading PDFs with pypdfium2: pages as pictures, their text, and the outline. No rule about queries lives here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from pruners.core.errors import PruneBoardError

POINTS_PER_INCH = 72
MOST_PIXELS = 100_000_000  # A0 at 300 dpi is 140 million
PASSWORD_ERROR = 4  # FPDF_ERR_PASSWORD of pdfium's fpdfview.h
_BROKEN_WORD = re.compile("\ufffe\\s*")  # pdfium's mark of a hyphen at the end of a line
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class PdfError(PruneBoardError):
    """A PDF, or a page of it, cannot be read."""


@dataclass(frozen=True)
class OutlineEntry:
    """A line of an outline: its level (0 the highest), its title, and the page it points to (None: nowhere here)."""

    level: int
    title: str
    page: int | None


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The document, closed afterwards."""
    import pypdfium2 as pdfium

    try:
        document = pdfium.PdfDocument(path)
    except (pdfium.PdfiumError, OSError) as error:
        locked = getattr(error, "err_code", None) == PASSWORD_ERROR
        raise PdfError("it is encrypted" if locked else f"it is damaged or no PDF ({error})") from error
    try:
        yield document
    finally:
        document.close()


def outline(document: Any) -> list[OutlineEntry]:
    """The document's outline, top to bottom."""
    entries = []
    for bookmark in document.get_toc():
        target = bookmark.get_dest()
        page = None if target is None else target.get_index()
        inside = page is not None and 0 <= page < len(document)
        entries.append(OutlineEntry(bookmark.level, " ".join(bookmark.get_title().split()), page if inside else None))
    return entries


def page_text(document: Any, index: int) -> str:
    """The text layer of a page; empty where there is none, as in scans."""
    with _page(document, index) as page:
        text = page.get_textpage()
        try:
            return clean(text.get_text_range())
        finally:
            text.close()


def page_image(document: Any, index: int, dpi: int) -> Image.Image:
    """The page as a picture, in RGB. Annotations are drawn as a viewer draws them."""
    with _page(document, index) as page:
        width, height = (round(points * dpi / POINTS_PER_INCH) for points in page.get_size())
        if width * height > MOST_PIXELS:
            raise PdfError(f"page {index + 1} would be {width} x {height} pixels at {dpi} dpi; lower --dpi")
        bitmap = page.render(scale=dpi / POINTS_PER_INCH)
        try:
            return bitmap.to_pil().convert("RGB").copy()
        finally:
            bitmap.close()


def clean(text: str) -> str:
    """Lines end with a line feed, a word hyphenated at the end of a line is whole, control characters are gone."""
    text = _BROKEN_WORD.sub("", text.replace("\r\n", "\n"))
    return _CONTROL.sub("", text.replace("\r", "")).strip()


@contextmanager
def _page(document: Any, index: int) -> Iterator[Any]:
    import pypdfium2 as pdfium

    try:
        page = document[index]
        try:
            yield page
        finally:
            page.close()
    except pdfium.PdfiumError as error:
        raise PdfError(f"page {index + 1} cannot be read ({error})") from error
