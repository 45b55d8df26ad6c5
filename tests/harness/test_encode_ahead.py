"""Pages made ready ahead of the model give the very same store, and what goes wrong is said as without it."""

from __future__ import annotations

import harness.compat  # noqa: F401

import pytest

from harness.backbones import registry
from harness.backbones.batching import OutOfMemoryError
from harness.backbones.contract import Options
from harness.bench.encode import measure
from harness.benchmarks.data_set import read_folder
from harness.encode import encode
from harness.encode_ahead import encoded_ahead, works_ahead
from harness.progress import quiet
from tests.harness.benchmark_folder import write_benchmark


def shards(store):
    return {path.name: path.read_bytes() for path in sorted(store.folder.rglob("*.safetensors"))}


@pytest.fixture
def large(monkeypatch):
    """Tiny models, treated as those whose pages are not shared among processes."""
    monkeypatch.setattr("harness.backbones.base.SMALL", 0)


@pytest.mark.parametrize("name", ["colpali", "colqwen2"])
def test_a_store_made_ahead_is_the_same_to_the_last_bit(checkpoints, large, tmp_path, name):
    data_set = read_folder(write_benchmark(tmp_path / "pages", pages=14))
    options = {"batch_size": 3, "shard_pages": 8}
    made = {}
    backbone = registry.load(f"{name}={checkpoints(name)}", Options(device="cpu"))
    for ahead in (False, True):
        backbone.works_ahead = ahead
        assert not backbone.one_thread
        assert works_ahead(backbone) == ahead
        made[ahead] = shards(encode(backbone, data_set, tmp_path / f"{ahead}", **options))
    assert len(made[True]) >= 2
    assert made[True] == made[False]


def test_a_page_that_cannot_be_read_is_named(checkpoints, large, tmp_path):
    data_set = read_folder(write_benchmark(tmp_path / "pages", bad_page=7))
    backbone = registry.load(f"colqwen2={checkpoints('colqwen2')}", Options(device="cpu"))
    backbone.works_ahead = True
    with pytest.raises(Exception, match="doc_7"):
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


def test_batches_come_in_order_and_only_a_few_are_ahead():
    class Slow:
        ready = 0

        def twin(self):
            return self

        def prepare(self, pages):
            Slow.ready += 1
            return pages

        def encode_prepared(self, pages):
            return list(pages)

    found = []
    for encoded, hashes in encoded_ahead(
        Slow(), lambda i: (i, lambda: f"h{i}"), [[0, 1], [2], [3, 4], *([[9]] * 20)], 2
    ):
        found.append((encoded, hashes))
        assert Slow.ready <= len(found) + 4
    assert found[:3] == [([0, 1], ["h0", "h1"]), ([2], ["h2"]), ([3, 4], ["h3", "h4"])]
    assert len(found) == 23


def test_the_bench_measures_both_ways():
    rows = measure(4, 1.0, 2, 2, quiet)
    assert [row["way"] for row in rows] == ["when their turn comes", "ahead"]
    assert all(row["ms_page"] >= row["model_ms"] >= 1.0 for row in rows)
