"""What a person sees of the board, and the pages that every test of pages visits."""

from __future__ import annotations

import re

from playwright.sync_api import Page

NANO = "board/minidocs--nano.html"
PAGES = (
    "index.html", "about.html", "submit.html", NANO, "board/vidore-v1--colpali.html",
    "compare/minidocs--nano.html", "method/agglomerative.html", "backbone/nano.html",
    "result/minidocs--nano/agglomerative.html", "result/vidore-v1--colpali/sap.html",
)  # fmt: skip


def rows(tab: Page) -> list[list[str]]:
    """The cells that a person sees, row by row."""
    return tab.locator("#board tbody:visible tr:visible").evaluate_all(
        "rows => rows.map(row => [...row.cells].filter(c => c.checkVisibility()).map(c => c.textContent.trim()))"
    )


def heads(tab: Page) -> list[str]:
    return tab.locator("#board thead th:visible").evaluate_all("cells => cells.map(cell => cell.dataset.key)")


def column(tab: Page, key: str) -> list[str]:
    return [row[heads(tab).index(key)] for row in rows(tab)]


def numbers(texts: list[str]) -> list[float]:
    return [float(text.split()[0]) for text in texts if re.match(r"[\d.]+( |$)", text)]


def head(tab: Page, key: str):
    return tab.locator(f"#board th[data-key={key}]")
