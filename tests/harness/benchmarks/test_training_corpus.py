"""The training corpus by rows: draws by size and seed, and no more fetched than a draw needs."""

from __future__ import annotations

import harness.compat  # noqa: F401

from pathlib import Path

import fsspec
import pytest

from harness.benchmarks.benchmark import load_benchmark
from harness.benchmarks.calibration_sets import all_draws, colpali_train
from harness.benchmarks.known import training_draw
from harness.benchmarks.training_corpus import open_corpus
from pruners import PruneBoardError
from tests.harness.benchmarks.training_files import write_training_corpus


def test_pairs_are_drawn_by_seed_without_those_that_ask_nothing(tmp_path: Path):
    folder = write_training_corpus(tmp_path)
    drawn = colpali_train(folder, pairs=20)
    assert (len(drawn.page_ids), drawn.dropped_queries) == (20, 20)
    assert drawn.qrels == {page: {page: 1} for page in drawn.page_ids}
    for i, page in enumerate(drawn.page_ids):
        number = int(page.removeprefix("train-"))
        assert drawn.queries[page] == f"find {number} {number}"
        assert drawn.image(i).getpixel((0, 0))[0] == number
    assert colpali_train(folder, pairs=20).content == drawn.content
    assert colpali_train(folder, pairs=20, seed=1).page_ids != drawn.page_ids


def test_the_union_of_draws_has_every_pair_of_every_draw_once(tmp_path: Path):
    corpus = open_corpus(write_training_corpus(tmp_path))
    union = all_draws(corpus, (5, 20), (42, 43))
    drawn = {p for n in (5, 20) for s in (42, 43) for p in colpali_train(tmp_path, n, s).page_ids}
    assert set(union.page_ids) == drawn
    assert 20 < len(union.page_ids) < 50


def test_size_and_seed_are_chosen_by_name(tmp_path: Path):
    folder = write_training_corpus(tmp_path)
    (data_set,) = load_benchmark(f"colpali-train(pairs=7,seed=3,path={folder})").data_sets
    assert data_set.page_ids == colpali_train(folder, pairs=7, seed=3).page_ids
    assert training_draw("colpali-train") == {}
    assert training_draw("vidore-v1") is None
    for wrong in ("pairs=0", "pairs=many", "size=3"):
        with pytest.raises(PruneBoardError, match=rf"'{wrong}' is not understood; write colpali-train\(pairs=1000"):
            training_draw(f"colpali-train({wrong})")


def test_from_the_hub_only_row_groups_with_drawn_pages_are_fetched_and_only_once(tmp_path: Path):
    hub = fsspec.filesystem("memory")
    local = write_training_corpus(tmp_path / "local", rows=160, noise=48)
    hub.put(str(local / "data"), "datasets/vidore/small@abc/data", recursive=True)
    read = count_reads(hub)
    corpus = open_corpus("vidore/small", "abc", hub, tmp_path / "kept")
    drawn = corpus.benchmark("drawn", corpus.draw(3, 42))
    whole = sum(file.stat().st_size for file in local.glob("data/*.parquet"))
    assert 0 < read["bytes"] < whole / 3
    assert drawn.revision == "abc"
    assert drawn.content == colpali_train(local, pairs=3).content
    before = read["bytes"]
    again = open_corpus("vidore/small", "abc", hub, tmp_path / "kept")
    assert again.benchmark("drawn", again.draw(3, 42)).content == drawn.content
    assert read["bytes"] == before, "what was fetched is kept"
    assert drawn.image(0).size == (48, 48)


def count_reads(hub) -> dict[str, int]:
    """How many bytes are read of the files that this file system opens."""
    read, plain = {"bytes": 0}, hub.open

    def counted(path, mode):
        file = plain(path, mode)
        take = file.read

        def reading(size=-1):
            data = take(size)
            read["bytes"] += len(data)
            return data

        file.read = reading
        return file

    hub.open = counted
    return read


def test_a_corpus_of_which_a_file_is_missing_is_not_drawn_from(tmp_path: Path):
    folder = write_training_corpus(tmp_path)
    (folder / "data" / "train-00000-of-00002.parquet").unlink()
    with pytest.raises(PruneBoardError, match=r"lacks train-00000-of-00002\.parquet"):
        colpali_train(folder)
