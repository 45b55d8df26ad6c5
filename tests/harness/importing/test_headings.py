"""Headings of an outline: what of them is a number, and which of them ask for the same."""

from __future__ import annotations

import pytest

from harness.importing.contents import contents_pages, is_contents_page
from harness.importing.headings import headings, questions
from harness.importing.pdf import OutlineEntry, clean


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("1 Introduction and preliminaries", "Introduction and preliminaries"),
        ("1.2.3 The DESCRIPTION file", "The DESCRIPTION file"),
        ("2. Objects and values", "Objects and values"),
        ("3) Third thing", "Third thing"),
        ("B.2 Tables of results", "Tables of results"),
        ("Appendix A A sample session", "A sample session"),
        ("Chapter 12: Fire safety", "Fire safety"),
        ("Part IV Annual report", "Annual report"),
        ("What is R?", "What is R?"),
        ("2023 annual report", "2023 annual report"),  # a year
        ("3D plots of data", "3D plots of data"),
        ("C entry points", "C entry points"),
        ("A sample session", "A sample session"),  # an article
        ("Part numbers of spares", "Part numbers of spares"),
        ("12", "12"),
    ],
)
def test_a_number_is_stripped_and_a_word_is_not(title, text):
    (heading,) = headings([OutlineEntry(0, title, 0)])
    assert heading.text == text


def test_a_lone_letter_is_a_number_where_it_goes_on_with_the_numbering():
    titles = ["1 Using R", "2 Objects", "Concept index", "A A sample session", "B Running it", "D Not the next letter"]
    found = [heading.text for heading in headings([OutlineEntry(0, title, 0) for title in titles])]
    assert found == ["Using R", "Objects", "Concept index", "A sample session", "Running it", "D Not the next letter"]


def test_numbering_is_seen_within_a_level_and_a_chapter():
    entries = [
        OutlineEntry(0, "1 One", 0),
        OutlineEntry(1, "A small example", 0),
        OutlineEntry(0, "A References cited", 1),
    ]
    assert [heading.text for heading in headings(entries)] == ["One", "A small example", "References cited"]


def test_a_heading_in_several_places_has_several_gold_pages():
    first = headings(
        [OutlineEntry(0, "1 Concept index", 4), OutlineEntry(0, "2 Data frames", 2), OutlineEntry(0, "Data frames", 2)]
    )
    second = headings(
        [OutlineEntry(0, "Concept Index", 7), OutlineEntry(0, "Nowhere at all", None), OutlineEntry(0, "Licensing", 1)]
    )
    found = questions([first, second])
    assert found.queries == {"concept index": "Concept index", "data frames": "Data frames"}
    assert found.gold == {"concept index": [(0, 4), (1, 7)], "data frames": [(0, 2)]}
    assert (found.short, found.pointless) == (1, 1)


def test_words_are_counted_not_punctuation():
    assert questions([headings([OutlineEntry(0, "Licensing - 2", 0), OutlineEntry(0, "Licensing -", 0)])]).queries == {
        "licensing - 2": "Licensing - 2"
    }


KEYS = {"using r", "data frames", "reading files", "a long heading that wraps"}
CONTENTS = "i\nTable of Contents\n1 Using R . . . . . . . 3\n2 Data frames. . . . 12\n2.1 Reading files 14"


def test_a_page_that_lists_headings_with_page_numbers_is_a_table_of_contents():
    assert is_contents_page(CONTENTS, KEYS)


@pytest.mark.parametrize(
    "text",
    [
        "12\n2 Data frames\nA data frame is a list. See\nUsing R\nReading files\nfor more.",  # no numbers
        CONTENTS.replace("1 Using R . . . . . . . 3\n", ""),  # two lines only
        CONTENTS + "\nthis page goes on with prose" * 3,  # less than half
        "Table 1 3\nTable 2 4\nTable 3 9\nTable 4 10",  # numbers, but no headings of this document
        "",
    ],
)
def test_other_pages_are_not(text):
    assert not is_contents_page(text, KEYS)


def test_the_end_of_a_list_may_be_one_line():
    rest = "ii\nUsing R . . . 3"
    assert contents_pages(["Title", CONTENTS, rest, rest, "Prose of the book\nUsing R"], KEYS) == {1, 2, 3}
    assert contents_pages(["Title", rest], KEYS) == frozenset()


def test_text_of_a_pdf_is_cleaned():
    assert clean("one\r\ntwo hyph\ufffe\r\nenated\x02 \rword\r\n") == "one\ntwo hyphenated word"
