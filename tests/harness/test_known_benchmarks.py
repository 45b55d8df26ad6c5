"""What is known of benchmarks comes from mteb: newer versions are pinned, and what mteb has replaced is said."""

from __future__ import annotations

import harness.compat  # noqa: F401

import datasets
import mteb
import pytest

from harness.benchmarks import benchmark, mteb_tasks
from harness.benchmarks.known import known, superseded, task_names
from harness.benchmarks.listing import rows
from tests.harness.benchmarks.local_tasks import local_task, write_layout


def test_vidore_v3_1_is_pinned_as_mteb_has_it():
    names = task_names("vidore-v3.1")
    assert len(names) == 8
    for name in names:
        facts, about = known()["tasks"][name], mteb.get_task(name).metadata
        assert facts["revision"] == about.dataset["revision"]
        assert facts["main_score"] == about.main_score == "ndcg_at_10"
        assert len(facts["subsets"]) == 6
        assert facts["shared_corpus"]
        assert facts["page_texts"]
        assert "superseded_by" not in facts


@pytest.mark.parametrize(("name", "data_sets"), [("real-mm-rag", 4), ("miracl-vision", 1), ("vdr-multilingual", 1)])
def test_tasks_that_are_in_no_benchmark_have_a_name_here(name, data_sets):
    assert len(task_names(name)) == data_sets
    for task in task_names(name):
        assert known()["tasks"][task]["revision"] == mteb.get_task(task).metadata.dataset["revision"]


def test_what_mteb_replaced_is_said(monkeypatch):
    for name in task_names("vidore-v3"):
        assert known()["tasks"][name]["superseded_by"] == mteb.get_task(name).superseded_by == f"{name}.v2"
    (told,) = superseded(["Vidore3HrRetrieval"])
    assert told.startswith("Vidore3HrRetrieval is superseded by Vidore3HrRetrieval.v2")
    assert superseded(task_names("vidore-v1")) == []
    monkeypatch.setattr(mteb_tasks, "load_task", lambda name: ())
    assert benchmark.load_benchmark("Vidore3HrRetrieval").remarks() == [told]
    (row,) = [row for row in rows() if row["task"] == "Vidore3HrRetrieval"]
    assert row["superseded_by"] == "Vidore3HrRetrieval.v2"


def test_texts_of_pages_are_read_where_mteb_has_them(tmp_path, datasets_cache):
    """ViDoRe v3.1 carries what OCR read, so that encoders of text can run it; they count in the content."""
    task = local_task("VidoreDocVQARetrieval", write_layout(tmp_path / "pages", pages=8, queries=3))
    task.load_data()
    (plain,) = mteb_tasks.from_task(task)
    for subset in task.dataset.values():
        for split in subset.values():
            texts = [None, *(f"page {i}" for i in range(1, len(split["corpus"])))]
            split["corpus"] = split["corpus"].add_column("text", datasets.Dataset.from_dict({"text": texts})["text"])
    (read,) = mteb_tasks.from_task(task)
    assert plain.texts is None
    assert read.texts is not None
    assert read.texts[:2] == ("", "page 1")
    assert read.content["corpus"] == plain.content["corpus"]
    assert "texts" in read.content
