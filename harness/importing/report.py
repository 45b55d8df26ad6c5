"""What an import found and left out: said on the terminal, in the folder's README, and in `import.json`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class ImportReport:
    """Counts of one import. Filled while it runs."""

    pages: int = 0
    queries: int = 0
    qrels: int = 0
    contents_pages: int = 0
    blank_pages: int = 0
    duplicate_pages: int = 0
    textless_pages: int = 0
    ocr_pages: int = 0
    short_headings: int = 0
    pointless_headings: int = 0
    lost_queries: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    """File -> why it was not imported."""
    unreadable_pages: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def lines(self) -> list[str]:
        """What was done, as sentences; nothing that is zero is mentioned."""
        said = [f"{self.pages} pages, {self.queries} queries, {self.qrels} judgements."]
        counts = {
            "tables of contents were left out: they list the queries verbatim (--keep-contents-pages keeps them)": (
                self.contents_pages
            ),
            "blank pages were left out": self.blank_pages,
            "pages look exactly like an earlier one": self.duplicate_pages,
            "pages were read by OCR": self.ocr_pages,
            "pages have no text (scans? --ocr reads them)": self.textless_pages,
            "headings are too short for a query": self.short_headings,
            "headings point to no page": self.pointless_headings,
            "queries lost their only page": self.lost_queries,
        }
        said += [f"- {count} {what}" for what, count in counts.items() if count]
        said += [f"- left out: {name}: {why}" for name, why in {**self.skipped, **self.unreadable_pages}.items()]
        return said
