"""What was read has one identity, and what differs from the pinned is said."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.benchmarks import benchmark
from harness.benchmarks.content import content_hashes
from harness.benchmarks.embedded import EMBEDDED
from harness.benchmarks.known import cached_revision, differences, known
from harness.benchmarks.listing import rows

PAGES, FILES = ("a", "b"), ("1", "2")
QUERIES, LANGUAGES = {"q": "who?", "r": "what?"}, {"q": "english", "r": "french"}
QRELS = {"q": {"a": 1, "b": 2}, "r": {"b": 1}}
SAME = content_hashes(PAGES, FILES, QUERIES, LANGUAGES, QRELS)


@pytest.mark.parametrize(
    ("part", "changed"),
    [
        ("corpus", (("a", "c"), FILES, QUERIES, LANGUAGES, QRELS)),
        ("corpus", (PAGES, ("1", "3"), QUERIES, LANGUAGES, QRELS)),
        ("corpus", (("b", "a"), FILES, QUERIES, LANGUAGES, QRELS)),
        ("queries", (PAGES, FILES, {**QUERIES, "q": "who!"}, LANGUAGES, QRELS)),
        ("queries", (PAGES, FILES, QUERIES, {**LANGUAGES, "q": "german"}, QRELS)),
        ("qrels", (PAGES, FILES, QUERIES, LANGUAGES, {**QRELS, "r": {"b": 2}})),
        ("qrels", (PAGES, FILES, QUERIES, LANGUAGES, {**QRELS, "r": {"a": 1}})),
    ],
)
def test_each_hash_sees_its_own_part_and_nothing_else(part, changed):
    hashes = content_hashes(*changed)
    assert {name for name in SAME if hashes[name] != SAME[name]} == {part}


def test_the_order_of_qrels_does_not_count():
    other_order = {"r": {"b": 1}, "q": {"b": 2, "a": 1}}
    assert content_hashes(PAGES, FILES, QUERIES, LANGUAGES, other_order) == SAME


def test_an_embedded_benchmark_is_compared_with_its_manifest_and_a_changed_letter_is_said(tmp_path, monkeypatch):
    assert benchmark.load_benchmark("minidocs-v2").remarks() == []
    copy = tmp_path / "data"
    shutil.copytree(EMBEDDED / "minidocs-v2", copy / "minidocs-v2")
    shutil.copy(EMBEDDED / "manifest.json", copy)
    monkeypatch.setattr(benchmark, "EMBEDDED", copy)
    monkeypatch.setattr("harness.benchmarks.embedded.EMBEDDED", copy)
    path = copy / "minidocs-v2" / "briefs" / "queries" / "test-00000-of-00001.parquet"
    rows = pq.read_table(path).to_pylist()
    rows[3]["query"] += "s"
    pq.write_table(pa.Table.from_pylist(rows), path)
    (remark,) = benchmark.load_benchmark("minidocs-v2").remarks()
    assert remark.startswith("minidocs-v2/briefs is not the pinned one: queries hash to sha256-")


def test_what_was_read_of_a_known_task_is_compared_with_what_is_known():
    facts = known()["tasks"]["VidoreDocVQARetrieval"]
    read = {subset: dict(counts) for subset, counts in facts["subsets"].items()}
    assert differences("VidoreDocVQARetrieval", read, facts["revision"], {}) == []
    assert differences("VidoreDocVQARetrieval", read, None, {}) == []
    read["default"]["queries"] -= 1
    found = differences("VidoreDocVQARetrieval", read, "0" * 40, {})
    assert found == [
        f"revision {'0' * 40} was read, {facts['revision']} is pinned",
        "450 queries were read, 451 are known",
    ]
    assert differences("VidoreDocVQARetrieval", {}, None, {}) == ["default is missing"]


def test_pinned_content_hashes_count_too(monkeypatch):
    facts = json.loads(json.dumps(known()))
    facts["tasks"]["VidoreDocVQARetrieval"]["content"] = {"VidoreDocVQARetrieval": {"corpus": "sha256-1"}}
    monkeypatch.setattr("harness.benchmarks.known.known", lambda: facts)
    counts = facts["tasks"]["VidoreDocVQARetrieval"]["subsets"]
    read = {"VidoreDocVQARetrieval": {"corpus": "sha256-2"}}
    assert differences("VidoreDocVQARetrieval", counts, None, read) == [
        "corpus of VidoreDocVQARetrieval hash to sha256-2, sha256-1 is pinned"
    ]


def test_the_cache_is_looked_up_without_its_libraries(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    for name in ("HF_HUB_CACHE", "HF_DATASETS_CACHE"):
        monkeypatch.delenv(name, raising=False)
    dataset = "mteb/syntheticDocQA_energy_test_beir"
    assert cached_revision(dataset, "abc") == "no"
    built = tmp_path / "datasets" / "mteb___synthetic_doc_qa_energy_test_beir" / "corpus" / "0.0.0"
    (built / "def").mkdir(parents=True)
    assert cached_revision(dataset, "abc") == "another revision"
    (tmp_path / "hub" / "datasets--mteb--syntheticDocQA_energy_test_beir" / "snapshots" / "abc").mkdir(parents=True)
    assert cached_revision(dataset, "abc") == "yes"


def test_a_wrong_name_is_met_with_the_nearest_right_one():
    with pytest.raises(benchmark.BenchmarkError, match="did you mean VidoreDocVQARetrieval"):
        benchmark.load_benchmark("VidoreDocVQARetreival")
    with pytest.raises(benchmark.BenchmarkError, match="harness list benchmarks"):
        benchmark.load_benchmark(str(Path("nowhere") / "at" / "all"))


def test_remarks_name_queries_without_text():
    task = replace(benchmark.load_benchmark("minidocs-v2").data_sets[0], dropped_queries=3)
    assert benchmark.Benchmark("x", (task,)).remarks() == ["minidocs-v2/briefs: 3 queries have no text, left out"]


def test_the_list_has_every_task_with_its_pages_counted_once():
    found = {row["task"]: row for row in rows()}
    esg = found["Vidore2ESGReportsRetrieval"]
    assert (esg["benchmark"], esg["pages"], esg["queries"]) == ("vidore-v2", 1538, 4 * 57)
    assert esg["languages"] == ["fra", "spa", "eng", "deu"]
    assert len(esg["revision"]) == 40
    assert esg["cached"] in ("yes", "no", "another revision")
    assert found["JinaVDRAirbnbSyntheticRetrieval"]["pages"] == 10 * 1000  # other pages in each of ten languages
    assert found["Vidore3NuclearRetrieval"]["benchmark"] == ""  # not public
    assert found["VidoreDocVQARetrieval"]["colpali_in_domain"] is True
    assert found["VidoreTabfquadRetrieval"]["languages"] == ["fra"]
    assert sum(row["benchmark"] == "vidore-v1" for row in rows()) == 10
