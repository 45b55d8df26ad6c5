"""Scanned pages get their text from RapidOCR, whose models come inside the package."""

from __future__ import annotations

import socket

import pytest
from PIL import Image, ImageDraw, ImageFont

from harness.benchmarks.data_set import read_folder
from harness.importing.from_labels import import_labelled
from harness.importing.ocr import needs_ocr, reader


@pytest.fixture
def offline(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("OCR went to the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.slow
def test_a_scan_is_read_offline(tmp_path, offline):
    folder = tmp_path / "scans"
    folder.mkdir()
    scan = Image.new("RGB", (640, 160), "white")
    font = ImageFont.load_default(size=36)
    ImageDraw.Draw(scan).text((30, 50), "Annual report of 1987", fill="black", font=font)
    scan.save(folder / "scan.png")
    (folder / "queries.jsonl").write_text('{"id": "q", "text": "annual report"}\n')
    (folder / "qrels.tsv").write_text("q\tscan.png\t1\n")
    report = import_labelled(folder, tmp_path / "out", 72, reader())
    texts = read_folder(tmp_path / "out").texts
    assert texts is not None
    assert texts[0].replace(" ", "").lower() == "annualreportof1987"
    assert report.ocr_pages == 1


def test_a_page_with_a_text_layer_is_left_alone():
    assert needs_ocr("")
    assert needs_ocr("-- 12 --")
    assert not needs_ocr("This page was typeset and needs no OCR")
