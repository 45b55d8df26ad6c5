"""Is a page a table of contents? Such a page lists every query of an outline verbatim, and would win them all."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

FEWEST = 3
SHARE = 0.5

_LEADERS = re.compile(r"(?:\s*\.){3,}|\s*…+|\s*_{3,}")
_PAGE_NUMBER = re.compile(r"\s+(?:\d+|[ivxlc]+)$", re.IGNORECASE)
_LEADING_NUMBER = re.compile(r"^(?:\w+(?:\.\d+)*[.):]?\s+)?")


def contents_pages(texts: Iterable[str], keys: Collection[str]) -> frozenset[int]:
    """The contents pages of a document, from the texts of its pages in order."""
    found: set[int] = set()
    for page, text in enumerate(texts):
        if is_contents_page(text, keys, follows_one=page - 1 in found):
            found.add(page)
    return frozenset(found)


def is_contents_page(text: str, keys: Collection[str], follows_one: bool = False) -> bool:
    """Whether at least half of the lines, and three of them, are headings of the document with a page number behind.

    `keys` are the headings' `key`s. A line without a page number counts too when leader dots end it; a heading over
    its own section has neither. Lines that hold nothing but a number (of the page itself) are not counted. Right after
    a contents page one line is enough: the list may end there.
    """
    lines = [line for line in map(str.strip, text.splitlines()) if any(map(str.isalpha, line)) and len(line) > 4]
    listed = sum(_lists(line, keys) for line in lines)
    return listed >= (1 if follows_one else FEWEST) and listed >= SHARE * len(lines)


def _lists(line: str, keys: Collection[str]) -> bool:
    numbered = _PAGE_NUMBER.sub("", line)
    bare = _LEADERS.sub("", numbered).strip()
    if bare == line:
        return False
    key = " ".join(bare.split()).casefold()
    return key in keys or _LEADING_NUMBER.sub("", key) in keys
