"""Engines by name, what a worker elsewhere refuses, and what travels: without a cluster, in one process."""

import errno
import os
import pickle
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import harness
from harness.backbones import registry
from harness.backbones.contract import Card, Options
from harness.backbones.recipe import BackboneRecipe, recipe_of, with_recipe
from harness.benchmarks.benchmark import load_benchmark
from harness.encode import encode
from harness.encode_on import PartOrder, _encode, device_elsewhere, encode_on
from harness.engine import sameness
from harness.engine.engine import PROCESSES, open_engine, workers_here
from harness.evaluation.kept_counts import BLOCK, KeptCounts, KeptRows
from harness.evaluation.methods import choose_methods
from harness.evaluation.pruned_pages import Job
from harness.evaluation.scores import Scoring, in_a_row, load_queries
from harness.store.format import MANIFEST, StoreError
from harness.store.part import Part
from pruners import PruneBoardError
from tests.harness.evaluation.toy import write_backbone, write_data_set


@pytest.fixture
def made(tmp_path: Path):
    """A toy backbone, its benchmark and the finished store."""
    backbone = registry.load(str(write_backbone(tmp_path)))
    (data_set,) = load_benchmark(str(write_data_set(tmp_path / "pages", range(40)))).data_sets
    return backbone, data_set, encode(backbone, data_set, tmp_path / "stores")


def test_engines_by_name() -> None:
    with open_engine(None, 3) as (engine, workers):
        assert (engine, workers, engine.elsewhere) == (PROCESSES, 3, False)
    with open_engine("processes") as (_, workers):
        assert workers == os.cpu_count()
    with pytest.raises(PruneBoardError, match="no engine 'dask'; there are processes and ray"), open_engine("dask"):
        pass
    with pytest.raises(PruneBoardError, match="belong to --engine ray"), open_engine(None, ray_address="local"):
        pass


@pytest.mark.parametrize("engine", ["processes", "ray"])
@pytest.mark.parametrize("workers", [-1, 0, 10**6])
def test_so_many_workers_there_are_nowhere(engine: str, workers: int) -> None:
    """Said before anything is started."""
    with pytest.raises(PruneBoardError, match=rf"{workers} workers: choose 1 to"), open_engine(engine, workers):
        pass


def test_gpus_that_no_node_has_are_named(monkeypatch) -> None:
    ray = pytest.importorskip("ray")
    from harness.engine import ray as ours

    nodes = [{"Alive": True, "Resources": {"CPU": 8.0, "GPU": 1.0}}] * 2
    monkeypatch.setattr(ray, "nodes", lambda: nodes)
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 16.0, "GPU": 2.0})
    with pytest.raises(PruneBoardError, match=r"per-worker 2: no node has so many GPUs, the most is 1"):
        open_engine("ray", ray_gpus_per_worker=2.0).__enter__()
    with open_engine("ray", ray_gpus_per_worker=0.5) as (engine, _):
        assert engine.hands("cuda") == 4
    with pytest.raises(PruneBoardError, match="no node has so many GPUs"):
        ours.RayEngine(3.0).hands("cuda")


class OnCores:
    """A backbone that chose its device by itself."""

    device = "cpu"
    card = Card("mine", "none", "1", 0, 0, 3, "float32", (), "nothing", "", "", "", "{}")


@pytest.mark.parametrize(("gpus", "asked", "fine"), [(2.0, None, False), (2.0, "cpu", True), (0.0, None, True)])
def test_gpus_are_not_left_idle_in_silence(monkeypatch, gpus: float, asked: str | None, fine: bool) -> None:
    """A machine without a GPU that starts work on a cluster which has some."""
    engine = type("Cluster", (), {"gpus": gpus})()
    backbone = with_recipe(OnCores(), BackboneRecipe("mine.py", Options(device=asked)))
    if fine:
        assert device_elsewhere(engine, backbone) == "cpu"
        return
    with pytest.raises(PruneBoardError, match=r"has 2 GPUs and this machine has none.*--device cpu"):
        device_elsewhere(engine, backbone)


def test_options_of_ray_without_ray_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PruneBoardError, match="belong to --engine ray"):
        harness.encode("nano", "minidocs-v2", store=tmp_path, ray_address="local")


def test_without_ray_the_engine_says_how_to_get_it() -> None:
    """In a process of its own, in which Ray cannot be imported."""
    program = (
        "import sys; sys.modules['ray'] = None\n"
        "from harness.cli import app, run\n"
        "sys.argv = ['harness', 'encode', '--backbone', 'nano', '--benchmark', 'minidocs-v2', '--engine', 'ray']\n"
        "sys.exit(run())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install 'pruneboard[ray]' on every node" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("address", ["127.0.0.1", "somewhere:port"])
def test_an_address_must_be_one(address: str) -> None:
    pytest.importorskip("ray")
    with (
        pytest.raises(PruneBoardError, match="--ray-address is auto, local or HOST:PORT"),
        open_engine("ray", ray_address=address),
    ):
        pass


@pytest.mark.parametrize("listens", [False, True], ids=["nobody", "somebody who says nothing"])
def test_an_address_that_does_not_answer_is_named_soon(listens: bool, monkeypatch) -> None:
    pytest.importorskip("ray")
    monkeypatch.setattr("harness.engine.ray.PATIENCE", 1.0)
    mute = socket.socket()
    mute.bind(("127.0.0.1", 0))
    port = mute.getsockname()[1]
    if listens:
        mute.listen()
    else:
        mute.close()
    begun = time.monotonic()
    with (
        mute,
        pytest.raises(PruneBoardError, match=rf"no Ray cluster answers at 127.0.0.1:{port} .*--ray-address local"),
        open_engine("ray", ray_address=f"127.0.0.1:{port}"),
    ):
        pass
    assert time.monotonic() - begun < 30


def test_a_cluster_that_is_gone_is_named_soon_by_auto_too(monkeypatch) -> None:
    """Ray's file of the latest cluster outlives it."""
    services = pytest.importorskip("ray._private.services")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(services, "find_gcs_addresses", set)
    monkeypatch.setattr(services, "find_bootstrap_address", lambda folder: "127.0.0.1:1")
    begun = time.monotonic()
    with pytest.raises(PruneBoardError, match=r"no Ray cluster answers at 127.0.0.1:1 "), open_engine("ray"):
        pass
    assert time.monotonic() - begun < 30


def test_a_cluster_has_more_workers_than_this_machine() -> None:
    class Elsewhere:
        elsewhere = True

    assert workers_here(Elsewhere(), 512) == os.cpu_count()
    assert workers_here(Elsewhere(), 1) == 1
    assert workers_here(PROCESSES, 512) == 512, "as asked for, which is refused where it is too much"


def test_a_node_with_another_processor_is_refused_with_what_makes_them_alike() -> None:
    here = sameness.whereabouts()
    with pytest.raises(PruneBoardError, match=r"processor .* instead of ppc64 VSX\..*ATEN_CPU_CAPABILITY=avx2"):
        sameness.require_same({**here, "processor": "ppc64 VSX"})


def test_a_node_with_other_code_or_libraries_is_refused() -> None:
    here = sameness.whereabouts()
    sameness.require_same(here)
    other = {**here, "torch": "1.0", "PruneBoard": "0.1, code 0"}
    with pytest.raises(PruneBoardError) as refused:
        sameness.require_same(other)
    assert f"torch {torch.__version__.partition('+')[0]}" in str(refused.value)
    assert "instead of 1.0" in str(refused.value)
    assert f"PruneBoard {here['PruneBoard']} instead of 0.1, code 0" in str(refused.value)
    assert "numpy" not in str(refused.value), "what is the same is not named"


def test_the_code_of_the_project_is_told_apart_by_any_change(tmp_path: Path, monkeypatch) -> None:
    for package in ("harness", "pruners"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("")
    for package in (sameness.harness, sameness.pruners):
        monkeypatch.setattr(package, "__file__", str(tmp_path / package.__name__ / "__init__.py"))
    before = sameness._code()
    assert sameness._code() == before
    (tmp_path / "pruners" / "deep").mkdir()
    (tmp_path / "pruners" / "deep" / "new.py").write_text("x = 1")
    changed = sameness._code()
    (tmp_path / "pruners" / "deep" / "new.py").write_text("x = 2")
    assert len({before, changed, sameness._code()}) == 3


def test_work_travels_without_pages_and_opens_the_same_store(made, tmp_path: Path) -> None:
    _, _, store = made
    (tmp_path / "mine.py").write_text(
        'from pruners import scorer\n\n@scorer("mine")\ndef mine(page):\n    return page.vectors[:, 0]\n'
    )
    methods = choose_methods(["eos", str(tmp_path / "mine.py")], None)
    queries = load_queries(store, range(len(store.query_ids)))
    sent = pickle.dumps(Scoring(Job(store, tuple(methods), (0.1,), 42, queries, {0: [1]}), in_a_row))
    assert len(sent) < store.page(0).vectors.numel() * 4 * len(store) / 2, "names, not vectors"
    (tmp_path / "mine.py").unlink()  # a node that does not have the file
    there = pickle.loads(sent).job
    assert (there.store.folder, there.gold, there.profile) == (store.folder, {0: [1]}, "visual")
    assert [method.text for method in there.methods] == [method.text for method in methods]
    for one, other in zip(queries.tiles, there.queries.tiles, strict=True):
        assert torch.equal(one.tokens, other.tokens)
        assert np.array_equal(one.offsets, other.offsets)


def test_another_version_of_a_store_is_refused_and_a_missing_one_too(made) -> None:
    _, _, store = made
    sent = pickle.dumps(Scoring(Job(store, (), (0.1,), 42, load_queries(store, range(2)), {}), in_a_row))
    path = store.folder / MANIFEST
    text = path.read_text()
    path.write_text(text + " ")
    with pytest.raises(StoreError, match="another version of the store"):
        pickle.loads(sent)
    path.write_text(text)
    pickle.loads(sent)
    path.unlink()
    with pytest.raises(StoreError, match="keep stores in a folder that every node sees"):
        pickle.loads(sent)


def test_a_part_is_refused_where_the_backbones_file_is_another_one(made, tmp_path: Path) -> None:
    backbone, data_set, store = made
    identity = {**store.manifest.identity}
    order = PartOrder(data_set.selector, data_set.name, tmp_path / "other", identity, {}, Part(2, 2))
    assert _encode(backbone, order) == 8
    source = Path(recipe_of(backbone).selector)
    source.write_text(source.read_text() + "\nchanged = True\n")
    with pytest.raises(StoreError, match=r"made_with\.code is .* here and .* where it was begun"):
        _encode(registry.load(str(source)), order)


def test_a_node_whose_benchmark_lacks_the_data_set_says_so(made, tmp_path: Path) -> None:
    backbone, data_set, store = made
    order = PartOrder(data_set.selector, "another", tmp_path / "other", {**store.manifest.identity}, {}, Part(1, 2))
    with pytest.raises(StoreError, match=f"has no data set another here, only {data_set.name}"):
        _encode(backbone, order)


def test_what_is_made_by_hand_cannot_be_loaded_elsewhere(made, tmp_path: Path) -> None:
    class Elsewhere:
        elsewhere = True

    backbone, data_set, _ = made
    by_hand = type(backbone)()
    with pytest.raises(PruneBoardError, match="the backbone toy was made by hand"):
        encode_on(Elsewhere(), by_hand, data_set, tmp_path / "none")


def test_kept_vectors_come_back_as_they_were_put() -> None:
    pages = 2 * BLOCK + 7
    rng = np.random.default_rng(0)
    expected = rng.integers(0, 2**31 - 1, (5, pages)).astype(np.int32)
    table = KeptCounts(5, pages)
    left = rng.permutation(pages)
    left[: pages // 2].sort()  # runs of neighbours, and single pages
    for some in np.split(left, [1, 50, pages // 3, pages - 20]):
        table.put(some, expected[:, some])
    cells = np.array([[4, 0], [2, 2]])
    rows = KeptRows(table, cells)
    assert rows.shape == (2, 2, pages)
    assert all(np.array_equal(rows[at], expected[cells[at]]) for at in np.ndindex(2, 2))
    assert (KeptCounts(3, 10).rows([2]) == 0).all(), "of pages that nobody wrote"
    chosen = rng.random(pages) < 0.5
    assert np.array_equal(table.totals(chosen), expected[:, chosen].sum(1, dtype=np.int64))


def test_a_full_disk_is_named_by_the_file_of_what_was_kept(tmp_path: Path, monkeypatch) -> None:
    def full(*write: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    table = KeptCounts(3, 10, tmp_path / "kept")
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space left") as error:
        table.put(np.arange(2), np.ones((3, 2)))
    assert error.value.filename == str(tmp_path / "kept")
