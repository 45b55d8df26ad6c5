"""Queries out of outlines: a heading, without its number, asks for the page it points to.

A heading that stands in several places (two manuals both have `Concept index`) has several gold pages. One that points
nowhere, or is too short to ask for anything, gives no query; both are counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.importing.pdf import OutlineEntry

MIN_WORDS = 2

# 1  1.2  1.2.  3)  A.1  B.2.1.   A plain number of four digits is a year, and belongs to the heading.
_NUMBER = r"(?:\d{1,3}(?:\.\d+)*|[A-Z](?:\.\d+)+)[.):]?"
_NUMBERED = re.compile(rf"{_NUMBER}\s+(?=\S)")
_NAMED = re.compile(rf"(?:Appendix|Chapter|Part|Section)\s+(?:{_NUMBER}|[A-Z][.):]?|[IVXLC]+[.):]?)\s+(?=\S)")
_LETTER = re.compile(r"([A-Z])[.):]?\s+(?=\S)")


@dataclass(frozen=True)
class Heading:
    """An entry of an outline without its number, and the page it points to."""

    text: str
    page: int | None

    @property
    def key(self) -> str:
        """What makes two headings the same question."""
        return self.text.casefold()

    @property
    def words(self) -> int:
        return sum(any(map(str.isalnum, word)) for word in self.text.split())


def headings(entries: Iterable[OutlineEntry]) -> list[Heading]:
    """The headings of one document, numbers stripped.

    A lone letter is an appendix's number only where it goes on with the numbering: `A` after a numbered heading of the
    same level, `B` after `A`. Elsewhere `A sample session` begins with an article.
    """
    last: dict[int, str] = {}  # level -> the last number there
    found = []
    for entry in entries:
        before = last.get(entry.level, "")
        number, text = _split(entry.title, before)
        last = {level: value for level, value in last.items() if level < entry.level} | {entry.level: number or before}
        found.append(Heading(text, entry.page))
    return found


def _split(title: str, last: str) -> tuple[str, str]:
    """The number of a heading and the rest of it."""
    match = _NAMED.match(title) or _NUMBERED.match(title)
    if match is None and (letter := _LETTER.match(title)) is not None:
        after_a_number = bool(last) and not last.isalpha() and letter[1] == "A"
        after_a_letter = last.isalpha() and letter[1] == chr(ord(last[0]) + 1)
        if after_a_number or after_a_letter:
            return letter[1], title[letter.end() :]
    if match is None:
        return "", title
    number = match[0].strip().split()[-1].rstrip(".):")
    return number, title[match.end() :]


@dataclass(frozen=True)
class Questions:
    """Queries and their gold pages (as (document, page)), and the headings that gave none."""

    queries: dict[str, str]
    """key -> text, as first written."""
    gold: dict[str, list[tuple[int, int]]]
    short: int
    pointless: int


def questions(documents: Sequence[Sequence[Heading]], min_words: int = MIN_WORDS) -> Questions:
    """The queries of all documents together."""
    queries: dict[str, str] = {}
    gold: dict[str, list[tuple[int, int]]] = {}
    short = pointless = 0
    for number, document in enumerate(documents):
        for heading in document:
            if heading.words < min_words:
                short += 1
            elif heading.page is None:
                pointless += 1
            else:
                queries.setdefault(heading.key, heading.text)
                places = gold.setdefault(heading.key, [])
                if (number, heading.page) not in places:
                    places.append((number, heading.page))
    return Questions(queries, gold, short, pointless)
