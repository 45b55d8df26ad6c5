"""PDFs become a benchmark through their own outline; whatever is left out is named or counted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.benchmarks.data_set import read_folder
from harness.cli import app
from harness.importing.from_outline import OutlineSettings, import_outlines
from harness.importing.writing import new_folder
from pruners.core.errors import PruneBoardError
from tests.harness.importing.tiny_pdf import write_pdf

SETTINGS = OutlineSettings(dpi=72)
GUIDE = [
    ["A guide to pumps"],
    ["Contents", "1 Fire pumps ...... 3", "1.1 Fuel and oil ...... 4", "2 Closing words ...... 5"],
    ["1 Fire pumps", "Pumps move water."],
    ["1.1 Fuel and oil", "Diesel only."],
    ["2 Closing words", "The end."],
    [],  # blank
]
GUIDE_OUTLINE = [
    (0, "Contents list", 1),
    (0, "1 Fire pumps", 2),
    (1, "1.1 Fuel and oil", 3),
    (1, "Licensing", 3),
    (0, "2 Closing words", 4),
    (0, "Gone elsewhere", None),
]


@pytest.fixture
def pdfs(tmp_path):
    folder = tmp_path / "pdfs"
    write_pdf(folder / "guide.pdf", GUIDE, GUIDE_OUTLINE)
    other = [["Another cover"], ["Closing words", "Goodbye."], GUIDE[2]]  # the last page looks like guide's third
    write_pdf(folder / "sub" / "other.pdf", other, [(0, "9 Closing words", 1), (0, "Fire pumps again", 2)])
    return folder


def test_headings_ask_for_the_pages_they_point_to(pdfs, tmp_path):
    report = import_outlines([pdfs], tmp_path / "out", SETTINGS)
    found = read_folder(tmp_path / "out")
    assert found.page_ids == (
        "guide.pdf#page=1",
        "guide.pdf#page=3",
        "guide.pdf#page=4",
        "guide.pdf#page=5",
        "sub/other.pdf#page=1",
        "sub/other.pdf#page=2",
    )
    gold = {found.queries[query]: set(pages) for query, pages in found.qrels.items()}
    assert gold == {
        "Fire pumps": {"guide.pdf#page=3"},
        "Fuel and oil": {"guide.pdf#page=4"},
        "Closing words": {"guide.pdf#page=5", "sub/other.pdf#page=2"},
        "Fire pumps again": {"guide.pdf#page=3"},  # the copy's gold page is the page it copies
    }
    assert found.texts is not None
    assert found.texts[2] == "1.1 Fuel and oil\nDiesel only."
    assert found.image(0).size == (300, 200)
    assert found.image(0).getextrema()[0][0] < 100, "there is ink on it"
    assert (report.pages, report.queries, report.qrels) == (6, 4, 5)
    assert (report.contents_pages, report.blank_pages, report.duplicate_pages) == (1, 1, 1)
    assert (report.short_headings, report.pointless_headings, report.lost_queries) == (1, 1, 1)


def test_contents_pages_are_kept_when_asked_for(pdfs, tmp_path):
    import_outlines([pdfs], tmp_path / "out", replace(SETTINGS, keep_contents_pages=True))
    found = read_folder(tmp_path / "out")
    assert "guide.pdf#page=2" in found.page_ids
    assert "Contents list" in found.queries.values()


def test_resolution_follows_dpi(pdfs, tmp_path):
    import_outlines([pdfs / "guide.pdf"], tmp_path / "out", replace(SETTINGS, dpi=144))
    assert read_folder(tmp_path / "out").image(0).size == (600, 400)


def test_unusable_pdfs_are_named_and_the_rest_is_imported(pdfs, tmp_path):
    write_pdf(pdfs / "locked.pdf", GUIDE, GUIDE_OUTLINE, encrypted=True)
    write_pdf(pdfs / "plain.pdf", GUIDE)
    (pdfs / "damaged.pdf").write_bytes(b"%PDF-1.4\nnothing of the sort")
    (pdfs / "empty.pdf").write_bytes(b"")
    (pdfs / "photo.png").write_bytes(b"x")
    (pdfs / "twin.pdf").write_bytes((pdfs / "guide.pdf").read_bytes())
    report = import_outlines([pdfs], tmp_path / "out", SETTINGS)
    assert set(report.skipped) == {"locked.pdf", "plain.pdf", "damaged.pdf", "empty.pdf", "photo.png", "twin.pdf"}
    assert "encrypted" in report.skipped["locked.pdf"]
    assert "no outline" in report.skipped["plain.pdf"]
    assert "damaged" in report.skipped["damaged.pdf"]
    assert "same file as guide.pdf" in report.skipped["twin.pdf"]
    assert report.pages == 6, "as without them"
    readme = (tmp_path / "out" / "README.md").read_text()
    assert all(name in readme for name in report.skipped)


def test_a_page_of_absurd_size_is_named_and_not_drawn(pdfs, tmp_path):
    write_pdf(pdfs / "poster.pdf", [["Big poster"]], [(0, "Big poster", 0)], size=(14000, 14000))
    report = import_outlines([pdfs], tmp_path / "out", SETTINGS)
    assert "lower --dpi" in report.unreadable_pages["poster.pdf#page=1"]
    assert report.pages == 6, "as without it"
    assert report.lost_queries == 2


def test_a_calibration_set_is_drawn_pairs_and_their_pages_only(pdfs, tmp_path):
    for place in ("one", "two"):
        import_outlines([pdfs], tmp_path / place, replace(SETTINGS, pairs=2))
    one, two = read_folder(tmp_path / "one"), read_folder(tmp_path / "two")
    assert one.content == two.content, "the same seed draws the same pairs"
    assert sum(map(len, one.qrels.values())) == 2
    assert {page for pages in one.qrels.values() for page in pages} == set(one.page_ids)


def test_nothing_to_ask_leaves_nothing_behind(tmp_path):
    write_pdf(tmp_path / "in" / "one.pdf", GUIDE[2:4], [(0, "Licensing", 0)])
    with pytest.raises(PruneBoardError, match="at least 2 words"):
        import_outlines([tmp_path / "in"], tmp_path / "out", SETTINGS)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_an_interrupted_import_leaves_nothing_behind(pdfs, tmp_path, monkeypatch):
    from harness.importing import from_outline

    def stop(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(from_outline, "write_labels", stop)
    with pytest.raises(KeyboardInterrupt):
        import_outlines([pdfs], tmp_path / "out", SETTINGS)
    assert [path.name for path in tmp_path.iterdir()] == ["pdfs"]


def test_an_existing_folder_is_not_touched(pdfs, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(PruneBoardError, match="exists already"):
        import_outlines([pdfs], tmp_path / "out", SETTINGS)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_the_folder_loads_with_the_datasets_library(pdfs, tmp_path):
    from datasets import load_dataset

    import_outlines([pdfs], tmp_path / "out", SETTINGS)
    parts = {
        part: load_dataset(str(tmp_path / "out"), part, split="test", cache_dir=str(tmp_path / "cache"))
        for part in ("corpus", "queries", "qrels")
    }
    assert parts["corpus"].column_names == ["corpus-id", "image", "text"]
    assert parts["corpus"][0]["image"].size == (300, 200)
    assert parts["queries"][0]["query"] == "Fire pumps"
    assert len(parts["qrels"]) == 5


@pytest.mark.slow
def test_mteb_reads_the_folder_as_we_do(pdfs, tmp_path, datasets_cache):
    from harness.benchmarks.mteb_tasks import from_task
    from tests.harness.benchmarks.local_tasks import local_task

    import_outlines([pdfs], tmp_path / "OwnPages", SETTINGS)
    ours = read_folder(tmp_path / "OwnPages")
    data_set = local_task("VidoreArxivQARetrieval", tmp_path / "OwnPages")
    data_set.load_data()
    (theirs,) = from_task(data_set)
    named = {f"corpus-test-{page}": page for page in ours.page_ids}  # mteb's names for them
    asked = {f"query-test-{query}": query for query in ours.queries}
    assert [named[page] for page in theirs.page_ids] == list(ours.page_ids)
    assert {asked[query]: text for query, text in theirs.queries.items()} == ours.queries
    judged = {asked[q]: {named[page]: grade for page, grade in row.items()} for q, row in theirs.qrels.items()}
    assert judged == ours.qrels
    assert theirs.file_hashes == ours.file_hashes


def test_the_command_says_what_was_left_out(pdfs, tmp_path):
    arguments = ["import", str(pdfs), "--queries", "outline", "--dpi", "72", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    assert "1 tables of contents were left out" in result.stderr
    result = CliRunner().invoke(app, [*arguments[:-1], str(tmp_path / "json"), "--json"])
    assert json.loads(result.stdout)["queries"] == 4


def test_two_imports_into_one_folder_do_not_mix(tmp_path: Path) -> None:
    """The second would clear the hidden folder that the first is filling."""
    with new_folder(tmp_path / "bench") as unfinished:
        (unfinished / "README.md").write_text("the first")
        with pytest.raises(PruneBoardError, match="another process is writing"), new_folder(tmp_path / "bench"):
            pytest.fail("the second must not begin")
    assert (tmp_path / "bench" / "README.md").read_text() == "the first"
    with pytest.raises(PruneBoardError, match="exists already"), new_folder(tmp_path / "bench"):
        pytest.fail("it is there")
