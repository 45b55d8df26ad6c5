"""Pages made ready ahead of the model give the very same store, and what goes wrong is said as without it."""

from __future__ import annotations

import harness.compat  # noqa: F401

import multiprocessing
import os
import signal

import pytest
import torch

from harness import encode_ahead
from harness.backbones import registry
from harness.backbones.batching import OutOfMemoryError
from harness.backbones.contract import Options
from harness.backbones.prepared import Prepared, new_memory, side_by_side
from harness.bench.encode import measure
from harness.benchmarks.data_set import read_folder
from harness.encode import encode
from harness.encode_ahead import encoded_ahead, works_ahead
from harness.progress import quiet
from pruners.core.errors import PruneBoardError
from tests.harness.benchmark_folder import SIZES, write_benchmark
from tests.harness.page_images import page_image

FAMILIES = ["colpali", "colqwen2", "colqwen2.5", "colsmol", "jina-v4", "colqwen3", "colqwen3.5", "colgemma3"]
FAMILIES += ["colmodernvbert", "colqwen-omni"]


def shards(store):
    return {path.name: path.read_bytes() for path in sorted(store.folder.rglob("*.safetensors"))}


@pytest.fixture
def large(monkeypatch):
    """Tiny models, treated as those whose pages are not shared among processes."""
    monkeypatch.setattr("harness.backbones.base.SMALL", 0)


@pytest.mark.parametrize("name", FAMILIES)
def test_pages_prepared_one_by_one_are_those_of_a_batch_to_the_last_bit(checkpoints, name):
    backbone = registry.load(f"{name}={checkpoints(name)}", Options(device="cpu"))
    pages = [page_image(size, i) for i, size in enumerate([*SIZES, (90, 400), (500, 500)])]
    together = backbone.prepare(pages)
    one_by_one = backbone.side_by_side([backbone.prepare([page]) for page in pages], new_memory)
    assert list(one_by_one.inputs.keys()) == list(together.inputs.keys())
    for key, tensor in together.inputs.items():
        assert tensor.dtype == one_by_one.inputs[key].dtype
        assert torch.equal(tensor, one_by_one.inputs[key]), key
    for (grid, ink), (other_grid, other_ink) in zip(together.places, one_by_one.places, strict=True):
        assert grid == other_grid
        assert torch.equal(ink, other_ink)


def test_pages_that_do_not_fit_beside_each_other_are_refused():
    pages = [Prepared({"pixel_values": torch.zeros(1, 3, size, size)}, ()) for size in (4, 5)]
    with pytest.raises(PruneBoardError, match="pixel_values have the shapes"):
        side_by_side(pages, None)


@pytest.mark.parametrize("name", ["colpali", "colqwen2", "colsmol"])
def test_a_store_made_ahead_is_the_same_to_the_last_bit(checkpoints, large, tmp_path, monkeypatch, name):
    """Whatever the workers, also where pages are larger than the memory that is shared."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(4)))
    data_set = read_folder(write_benchmark(tmp_path / "pages", pages=14))
    backbone = registry.load(f"{name}={checkpoints(name)}", Options(device="cpu"))
    assert not backbone.one_thread

    def made(folder, workers):
        return shards(encode(backbone, data_set, tmp_path / folder, batch_size=3, shard_pages=8, workers=workers))

    backbone.works_ahead = False
    expected = made("serial", None)
    assert len(expected) >= 2
    backbone.works_ahead = True
    assert works_ahead(backbone)
    for workers in (1, 2, 4):
        assert made(f"{workers}", workers) == expected
    shared = encode_ahead._shared
    monkeypatch.setattr(encode_ahead, "_shared", lambda size: shared(size // 9))
    assert made("small places", 2) == expected


def test_what_needs_no_model_is_done_by_other_processes(checkpoints, large, tmp_path, monkeypatch):
    data_set = read_folder(write_benchmark(tmp_path / "pages"))
    backbone = registry.load(f"colqwen2={checkpoints('colqwen2')}", Options(device="cpu"))
    backbone.works_ahead = True
    right = type(backbone).prepare
    log = tmp_path / "who"

    def noted(self, images):
        with log.open("a") as file:
            file.write(f"{os.getpid()}\n")
        return right(self, images)

    monkeypatch.setattr(type(backbone), "prepare", noted)
    encode(backbone, data_set, tmp_path / "store", batch_size=3, workers=2)
    here = str(os.getpid())
    who = log.read_text().split()
    assert who.count(here) == 1  # the first page, to know how large pages are
    assert len(who) == 1 + len(data_set.page_ids)


def test_a_page_that_cannot_be_read_is_named(checkpoints, large, tmp_path):
    data_set = read_folder(write_benchmark(tmp_path / "pages", bad_page=7))
    backbone = registry.load(f"colqwen2={checkpoints('colqwen2')}", Options(device="cpu"))
    backbone.works_ahead = True
    with pytest.raises(PruneBoardError, match="doc_7"):
        encode(backbone, data_set, tmp_path / "store", batch_size=2)


def test_out_of_memory_halves_batches_as_before(checkpoints, large, tmp_path, monkeypatch):
    data_set = read_folder(write_benchmark(tmp_path / "pages"))
    backbone = registry.load(f"colqwen2={checkpoints('colqwen2')}", Options(device="cpu"))
    backbone.works_ahead = True
    right, sizes = type(backbone).encode_prepared, []

    def tight(self, prepared):
        sizes.append(len(prepared.places))
        if len(prepared.places) > 2:
            raise RuntimeError("not enough memory: you tried to allocate")
        return right(self, prepared)

    monkeypatch.setattr(type(backbone), "encode_prepared", tight)
    assert len(encode(backbone, data_set, tmp_path / "store", batch_size=4)) == 10
    assert sizes[:3] == [4, 4, 2]
    monkeypatch.setattr(type(backbone), "encode_prepared", lambda self, prepared: tight(self, prepared) and 1 / 0)
    with pytest.raises((OutOfMemoryError, ZeroDivisionError)):
        encode(backbone, data_set, tmp_path / "other", batch_size=4)


class Numbers:
    """A backbone of whole numbers: a page is its index, and a model that writes down what it is given."""

    device = "cpu"

    def __init__(self, deadly=-1):
        self.deadly = deadly

    def prepare(self, pages):
        if pages[0] == self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return Prepared({"pixel_values": torch.full((1, 2), pages[0])}, ((None, torch.tensor([float(pages[0])])),))

    def side_by_side(self, pages, empty):
        return side_by_side(pages, None, empty)

    def encode_prepared(self, prepared):
        return prepared.inputs["pixel_values"][:, 0].tolist()


def read(index):
    return index, lambda: f"h{index}"


def test_batches_of_any_size_come_in_order_with_their_hashes():
    batches = [[5, 1], [2], [3, 4, 9], *([n] for n in range(10, 30))]
    found = list(encoded_ahead(Numbers(), read, batches, 2))
    assert found == [(batch, [f"h{page}" for page in batch]) for batch in batches]


def test_whoever_stops_early_leaves_no_process_behind():
    before = set(multiprocessing.active_children())
    running = encoded_ahead(Numbers(), read, [[n] for n in range(100)], 2)
    assert next(running) == ([0], ["h0"])
    assert set(multiprocessing.active_children()) > before
    running.close()
    assert set(multiprocessing.active_children()) <= before


def test_a_process_that_dies_is_said():
    with pytest.raises(PruneBoardError, match=r"died without a word.*smaller --batch-size"):
        list(encoded_ahead(Numbers(deadly=7), read, [[n] for n in range(20)], 2))


def _works(queue):
    queue.put(works_ahead(type("Ahead", (Numbers,), {"works_ahead": True})()))


def test_a_daemonic_process_makes_pages_ready_when_their_turn_comes():
    """It may have no children."""
    fork = multiprocessing.get_context("fork")
    for daemon in (False, True):
        queue = fork.Queue()
        process = fork.Process(target=_works, args=(queue,), daemon=daemon)
        process.start()
        assert queue.get(timeout=60) is not daemon
        process.join()


def test_for_cuda_batches_lie_in_pinned_memory(monkeypatch):
    """No GPU here: what is asked of torch is written down."""
    asked, right = [], torch.empty

    def empty(*shape, pin_memory=False, **more):
        asked.append(pin_memory)
        return right(*shape, **more)

    monkeypatch.setattr(torch, "empty", empty)
    for device, pinned in (("cpu", False), ("cuda", True)):
        asked.clear()
        backbone = Numbers()
        backbone.device = device
        assert len(list(encoded_ahead(backbone, read, [[1], [2]], 1))) == 2
        assert asked[:2] == [pinned, pinned]


@pytest.mark.slow
def test_the_bench_measures_both_ways():
    rows = measure(4, [1.0], 2, 2, quiet)
    assert [row["way"] for row in rows] == ["when their turn comes", "ahead"]
    assert all(row["ms_page"] >= row["model_ms"] and row["cpu_ms"] > 0 for row in rows)
