"""A labelled folder becomes a benchmark, or every bad row of it is told at once and nothing is written."""

from __future__ import annotations

import json

import pytest
from PIL import Image
from typer.testing import CliRunner

from harness.benchmarks.data_set import read_folder
from harness.cli import app
from harness.importing.from_labels import import_labelled
from harness.importing.problems import ImportProblemsError
from pruners.core.errors import PruneBoardError
from tests.harness.importing.tiny_pdf import write_pdf
from tests.harness.page_images import page_image

QUERIES = [{"id": "q1", "text": "fire pumps"}, {"_id": 2, "query": "fuel\u2028 and oil"}]
QRELS = ["query-id\tcorpus-id\tscore", "q1\tscans/a.png\t2", "q1\treport.pdf#page=2\t1", "2\tb.jpg\t1"]


@pytest.fixture
def labelled(tmp_path):
    folder = tmp_path / "mine"
    (folder / "scans").mkdir(parents=True)
    page_image((80, 60), 1).save(folder / "scans" / "a.png")
    page_image((80, 60), 2).save(folder / "b.jpg")
    write_pdf(folder / "report.pdf", [["One page"], ["Another page"]])
    write(folder, QUERIES, QRELS)
    return folder


def write(folder, queries, qrels):
    (folder / "queries.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in queries))
    (folder / "qrels.tsv").write_text("\n".join(qrels) + "\n")


def test_images_and_pdf_pages_are_pages_by_name(labelled, tmp_path):
    report = import_labelled(labelled, tmp_path / "out", 72)
    found = read_folder(tmp_path / "out")
    assert found.page_ids == ("b.jpg", "report.pdf#page=1", "report.pdf#page=2", "scans/a.png")
    assert found.queries == {"q1": "fire pumps", "2": "fuel\u2028 and oil"}
    assert found.qrels == {"q1": {"scans/a.png": 2, "report.pdf#page=2": 1}, "2": {"b.jpg": 1}}
    assert found.texts is not None
    assert tuple(found.texts) == ("", "One page", "Another page", "")
    with Image.open(labelled / "b.jpg") as original:
        assert found.image(0).tobytes() == original.convert("RGB").tobytes()
    assert (report.pages, report.queries, report.qrels) == (4, 2, 3)


def test_every_bad_row_is_told_at_once_and_nothing_is_written(labelled, tmp_path):
    rows = [
        json.dumps(QUERIES[0]),
        '{"id": "q1", "text": "again"}',
        '{"id": "q3", "text": "  "}',
        '{"id": "q4", "text": null}',
        '{"text": "no id"}',
        "not json",
        "[1, 2]",
    ]
    (labelled / "queries.jsonl").write_text("\n".join(rows))
    qrels = [QRELS[1], "q9\tb.jpg\t1", "q1\tabsent.png\t1", QRELS[1], "q1\tb.jpg\tvery", "q1", "q1\treport.pdf\t1"]
    qrels.append("q3\tb.jpg\t1")  # its query is told already
    (labelled / "qrels.tsv").write_text("\n".join(qrels))
    (labelled / "broken.png").write_bytes(b"this is no image")
    truncated = (labelled / "scans" / "a.png").read_bytes()
    (labelled / "short.png").write_bytes(truncated[: len(truncated) // 2])
    (labelled / "bad.pdf").write_bytes(b"%PDF-1.4")
    with pytest.raises(ImportProblemsError) as caught:
        import_labelled(labelled, tmp_path / "out", 72)
    told = {(problem.file, problem.row) for problem in caught.value.problems}
    assert told == {
        *(("queries.jsonl", row) for row in (2, 3, 4, 5, 6, 7)),
        *(("qrels.tsv", row) for row in (2, 3, 4, 5, 6, 7)),
        ("broken.png", None),
        ("short.png", None),
        ("bad.pdf", None),
    }
    assert "report.pdf#page=1" in str(caught.value), "how pages of a PDF are named"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_score_may_be_left_out_and_zero_is_a_judgement(labelled, tmp_path):
    write(labelled, QUERIES, ["q1\tscans/a.png", "2\tb.jpg\t0"])
    import_labelled(labelled, tmp_path / "out", 72)
    assert read_folder(tmp_path / "out").qrels == {"q1": {"scans/a.png": 1}, "2": {"b.jpg": 0}}


def test_labels_without_any_relevant_page_are_refused(labelled, tmp_path):
    write(labelled, QUERIES, ["q1\tb.jpg\t0"])
    with pytest.raises(ImportProblemsError, match="every score is 0"):
        import_labelled(labelled, tmp_path / "out", 72)


def test_languages_are_kept_when_every_query_has_one(labelled, tmp_path):
    write(labelled, [{**row, "language": "english"} for row in QUERIES], QRELS)
    import_labelled(labelled, tmp_path / "out", 72)
    assert read_folder(tmp_path / "out").languages == {"q1": "english", "2": "english"}


def test_the_output_may_not_lie_in_the_input(labelled):
    with pytest.raises(PruneBoardError, match="inside"):
        import_labelled(labelled, labelled / "out", 72)


def test_the_command_lists_problems_and_ends_with_status_2(labelled, tmp_path, monkeypatch, capsys):
    import sys

    from harness.cli import run

    (labelled / "qrels.tsv").write_text("q1\tabsent.png\t1\n")
    monkeypatch.setattr(sys, "argv", ["harness", "import", str(labelled), "--out", str(tmp_path / "out")])
    assert run() == 2
    assert "qrels.tsv, row 1: there is no page 'absent.png'" in capsys.readouterr().err


def test_a_folder_without_labels_is_told_how(tmp_path):
    write_pdf(tmp_path / "in" / "a.pdf", [["x"]])
    result = CliRunner().invoke(app, ["import", str(tmp_path / "in"), "--out", str(tmp_path / "out")])
    assert "--queries outline" in str(result.exception)
