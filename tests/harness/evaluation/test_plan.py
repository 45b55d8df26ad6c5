"""`harness evaluate --dry-run`: what is here, what is missing, what it takes; nothing is written, no hub is asked."""

from __future__ import annotations

import json
import shutil
import socket
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import harness
from harness.backbones import registry
from harness.benchmarks.benchmark import load_benchmark
from harness.cli import app
from harness.encode import encode, encode_part
from harness.engine.engine import PROCESSES
from harness.evaluation import head, page_cost
from harness.evaluation.plan import data_set_plan, duration, make_plan, size
from harness.store.part import Part
from pruners.core.errors import PruneBoardError
from tests.harness.evaluation.toy import write_backbone, write_data_set

PAGES = 96
Disk = namedtuple("Disk", "total used free")


@pytest.fixture
def toy(tmp_path, monkeypatch):
    write_data_set(tmp_path / "pages", range(PAGES), queries=5)
    write_backbone(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tree(folder: Path) -> dict[str, int]:
    skipped = {"__pycache__", ".pytest_cache"}
    found = [path for path in folder.rglob("*") if not skipped & set(path.parts)]
    return {str(path): path.stat().st_mtime_ns for path in found}


def run(*more: str, code: int = 0):
    options = ["--backbone", "toy_backbone.py", "--benchmark", "pages", "--store", "stores", "--pruner", "random"]
    result = CliRunner().invoke(app, ["evaluate", *options, "--budgets", "0.2", *more], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def dry(*more: str, code: int = 0) -> dict:
    return json.loads(run("--dry-run", "--json", *more, code=code).stdout)


def test_a_plan_counts_and_writes_nothing(toy):
    before = tree(toy)
    found = dry()
    assert tree(toy) == before
    (row,) = found["data_sets"]
    assert (row["name"], row["here"], row["pages"], row["queries"], row["left"]) == ("pages", True, PAGES, 5, PAGES)
    backbone, (data_set,) = registry.load("toy_backbone.py"), load_benchmark("pages").data_sets
    tried = backbone.encode_pages([data_set.image(PAGES // 3), data_set.image(2 * PAGES // 3)])
    assert found["cost"]["vectors"] == sum(len(page.vectors) for page in tried) / 2
    # 16 columns of two bytes; four signals of three layers and one of one, of four bytes
    assert found["store_bytes"] == PAGES * found["cost"]["vectors"] * (16 * 2 + (4 * 3 + 1) * 4)
    assert found["seconds"] > 0
    assert found["missing"] == []
    assert "96 pages of about" in run("--dry-run").stdout


def test_a_plan_knows_what_is_encoded(toy):
    backbone, (data_set,) = registry.load("toy_backbone.py"), load_benchmark("pages").data_sets
    encode_part(backbone, data_set, toy / "stores", Part(2, 3))
    assert dry()["data_sets"][0]["left"] == 64
    store = encode(backbone, data_set, toy / "stores")
    found = dry()
    written = sum(path.stat().st_size for path in store.folder.glob("*.safetensors"))
    assert (found["seconds"], found["store_bytes"], found["data_sets"][0]["bytes"]) == (0, 0, written)
    assert "all pages are encoded" in run("--dry-run").stdout


@pytest.mark.slow
def test_the_estimate_of_a_store_is_near_what_it_takes(toy):
    """Of nano's pages, which are alike; the rest is a shard's header."""
    options = {"backbone": "nano", "benchmark": "minidocs-v2", "pruners": ["random"]}
    found = harness.plan(store=toy / "stores", **options)
    stores = harness.encode("nano", "minidocs-v2", store=toy / "stores")
    real = sum(shard.bytes for store in stores.values() for shard in store.manifest.shards.values())
    assert found.store_bytes == pytest.approx(real, rel=0.1)


def test_a_stated_rate(toy):
    assert dry("--rate", "4")["seconds"] == PAGES / 4
    with pytest.raises(PruneBoardError, match="more than 0"):
        dry("--rate", "0")
    with pytest.raises(PruneBoardError, match="--rate is for --dry-run"):
        run("--rate", "4")


def test_a_task_of_mteb_is_not_read_and_its_store_is_known_by_name(toy, no_hub):
    backbone, (data_set,) = registry.load("toy_backbone.py"), load_benchmark("pages").data_sets
    name = "VidoreShiftProjectRetrieval"
    encode(backbone, replace(data_set, name=name), toy / "stores")
    (row,) = dry("--benchmark", name)["data_sets"]
    assert (row["encoded"], row["left"], row["here"]) == (PAGES, row["pages"] - PAGES, False)
    other = dry("--benchmark", "VidoreDocVQARetrieval")["data_sets"][0]
    assert other["encoded"] == 0


@pytest.fixture
def no_hub(tmp_path, monkeypatch):
    """An empty cache, and a network that nobody may use."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a hub was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_what_must_be_fetched_is_named_without_asking_a_hub(toy, no_hub):
    found = dry("--backbone", "colqwen2", "--benchmark", "vidore-v2", "--pruner", "sap", "--rate", "2")
    assert [name.partition("@")[0] for name in found["missing"]] == [
        "checkpoint vidore/colqwen2-v1.0",
        "data set Vidore2ESGReportsRetrieval",
        "data set Vidore2EconomicsReportsRetrieval",
        "data set Vidore2BioMedicalLecturesRetrieval",
        "data set Vidore2ESGReportsHLRetrieval",
        "data set colpali-train",
    ]
    assert found["seconds"] == (1538 + 452 + 1016 + 1538 + 500) / 2
    assert found["store_bytes"] is None
    assert not (toy / "hub").exists()


def test_a_run_offline_says_all_that_is_missing_before_any_work(toy, no_hub, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    before = tree(toy)
    with pytest.raises(PruneBoardError, match=r"checkpoint vidore/colqwen2-v1\.0.*; data set VidoreArxivQARetrieval"):
        run("--backbone", "colqwen2", "--benchmark", "VidoreArxivQARetrieval")
    assert tree(toy) == before


@pytest.mark.slow
def test_a_long_run_begins_with_its_plan_and_a_full_disk_stops_it(toy, monkeypatch):
    monkeypatch.setattr(head, "LONG", PAGES)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Disk(10, 9, 1))
    before = tree(toy)
    assert dry(code=1)["problems"][0].startswith("the stores need")
    with pytest.raises(PruneBoardError, match=r"the stores need .* and 1 B of the disk are free.*--dry-run"):
        run()
    assert tree(toy) == before
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Disk(1e12, 0, 1e12))
    assert "96 pages of about" in run().stderr


def command(*words: str):
    options = ["--backbone", "toy_backbone.py", "--benchmark", "pages", "--store", "stores"]
    result = CliRunner().invoke(app, [words[0], *options, *words[1:]], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.parametrize(
    ("words", "pages"),
    [
        (["encode"], PAGES),
        (["encode", "--vectors", "float32"], PAGES),
        (["encode", "--part", "1/3"], PAGES // 3),
        (["calibrate", "--pairs", "3"], PAGES),
        (["experiment", "layer-curve", "--calibration", "pages", "--pairs", "3"], PAGES),
    ],
)
def test_whatever_encodes_long_begins_with_its_plan_and_a_full_disk_stops_it(toy, monkeypatch, words, pages):
    monkeypatch.setattr(head, "LONG", pages)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Disk(10, 9, 1))
    with pytest.raises(PruneBoardError, match=r"the stores need .* and 1 B of the disk are free.*--store"):
        command(*words)
    assert not (toy / "stores").exists()
    if words[0] != "experiment":  # which takes its time, and is told the same
        monkeypatch.setattr(shutil, "disk_usage", lambda path: Disk(1e12, 0, 1e12))
        assert f"{pages} pages of about" in command(*words).stderr
        monkeypatch.setattr(head, "LONG", 1)
        assert "to encode on" not in command(*words).stderr


def test_vectors_of_float32_take_twice_the_room(toy):
    backbone, (data_set,) = registry.load("toy_backbone.py"), load_benchmark("pages").data_sets
    cost = {kind: page_cost.page_cost(backbone, data_set, None, 1, PROCESSES, kind) for kind in ("float16", "float32")}
    assert cost["float32"].bytes - cost["float16"].bytes == 2 * 16 * cost["float16"].vectors


def test_methods_that_nothing_can_be_learned_from_are_a_problem_of_the_plan(toy):
    (problem,) = dry("--pruner", "adaptive(random)", code=1)["problems"]
    assert "adaptive(random) must be calibrated on pages that are not evaluated, and pages brings none" in problem
    assert "sap" in dry("--pruner", "sap", code=1)["problems"][0]
    assert dry("--pruner", "sap", "--window", "1-2")["problems"] == []
    assert dry("--pruner", "adaptive(random)", "--calibration", "held-out")["problems"] == []


def test_methods_that_a_backbone_cannot_serve_are_named_before_any_work(toy):
    """The toy backbone gives no tokens."""
    found, why = dry("--pruner", "idf"), "pruner 'idf' needs token, which the backbone toy does not have"
    assert (found["methods"], found["problems"]) == (1, [])
    assert found["unfit"][0].startswith(why)
    before = tree(toy)
    with pytest.raises(PruneBoardError, match=why):
        command("evaluate", "--pruner", "idf")
    assert tree(toy) == before
    assert f"will have no results: {why}" in run("--pruner", "idf", code=1).stderr


def test_pages_that_data_sets_share_are_counted_once(toy):
    """As they are encoded once: the other store links them."""
    for name in ("first", "second"):
        shutil.copytree(toy / "pages", toy / "both" / name)
    write_data_set(toy / "both" / "third", range(100, 140), queries=5)
    table = toy / "both" / "second" / "queries" / "test-00000-of-00001.parquet"
    rows = pq.read_table(table).to_pylist()
    pq.write_table(pa.Table.from_pylist([{**row, "query": f"{row['query']} again"} for row in rows]), table)
    found = dry("--benchmark", "both", "--rate", "4")
    assert [row["left"] for row in found["data_sets"]] == [PAGES, PAGES, 40]
    assert (found["left"], found["seconds"]) == (PAGES + 40, (PAGES + 40) / 4)
    first, *_ = load_benchmark("both").data_sets
    encode(registry.load("toy_backbone.py"), first, toy / "stores")
    assert dry("--benchmark", "both")["left"] == 40


class Cluster:
    """An engine elsewhere, by what a plan asks of it."""

    elsewhere, gpus = True, 0.0

    def hands(self, device):
        return 4


THREADS = [(Cluster(), False, 1), (PROCESSES, False, 3), (PROCESSES, True, 1)]


@pytest.mark.parametrize(("engine", "small", "threads"), THREADS)
def test_time_is_measured_with_the_threads_that_workers_have(toy, monkeypatch, engine, small, threads):
    import torch

    backbone, (data_set,) = registry.load("toy_backbone.py"), load_benchmark("pages").data_sets
    seen, real = [], type(backbone).encode_pages
    monkeypatch.setattr(
        type(backbone), "encode_pages", lambda self, pages: (seen.append(torch.get_num_threads()), real(self, pages))[1]
    )
    monkeypatch.setattr(type(backbone), "one_thread", small, raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        page_cost.page_cost(backbone, data_set, None, 2, engine)
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {threads}


def test_one_gpu_encodes_where_processes_do_the_work(toy, monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    backbone, (data_set,) = registry.load("toy_backbone.py"), load_benchmark("pages").data_sets
    monkeypatch.setattr(type(backbone), "device", "cuda", raising=False)
    row = data_set_plan(data_set, "encode", backbone, toy / "stores")
    found = make_plan([row], backbone, data_set, toy / "stores", 2, PROCESSES)
    assert "to encode on cuda: time" in found.sentence()


def test_numbers_for_a_person():
    assert [size(count) for count in (0, 999, 1234567, 5e12)] == ["0 B", "999 B", "1.23 MB", "5 TB"]
    assert [duration(seconds) for seconds in (3, 120, 7200)] == ["3 s", "2 min", "2.0 h"]


def test_a_stated_rate_is_that_of_one_device():
    cost = page_cost.page_cost(None, None, 2.0, 1, PROCESSES, devices=4)
    assert cost.seconds == 1 / 8


def test_pages_to_calibrate_on_count_among_those_of_a_long_run(toy, monkeypatch):
    write_data_set(toy / "calibration", range(PAGES, PAGES + 30), queries=5)
    monkeypatch.setattr(head, "LONG", PAGES + 30)
    learns = ["--pruner", "adaptive(random)", "--calibration", "calibration"]
    assert f"{PAGES + 30} pages of about" in run(*learns).stderr
