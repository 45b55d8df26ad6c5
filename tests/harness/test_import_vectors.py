"""A store from files of vectors: three formats, one result; mistakes are named."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.numpy import save_file
from typer.testing import CliRunner

from harness.backbones import registry
from harness.benchmarks.benchmark import load_benchmark
from harness.cli import app
from harness.encode import encode
from harness.store.format import StoreError
from harness.store.import_vectors import import_vectors, read_vectors
from harness.store.reader import Store
from pruners import PrunerError, parse, require
from tests.harness.evaluation.toy import write_backbone, write_data_set

RNG = np.random.default_rng(3)
LENGTHS = [6, 4, 9]
GRIDS = [(2, 3), (2, 2), (3, 3)]
IDS = ["a", "b", "c"]
PAGES = [RNG.standard_normal((n, 5)).astype(np.float32) for n in LENGTHS]
EOS = [RNG.random((2, n)).astype(np.float32) for n in LENGTHS]
QUERIES = [RNG.standard_normal((n, 5)).astype(np.float32) for n in (3, 1)]


def offsets(parts):
    return np.cumsum([0, *map(len, parts)])


def write(folder, suffix, *, signals=True):
    arrays = {"vectors": np.concatenate(PAGES), "offsets": offsets(PAGES), "grids": np.array(GRIDS)}
    if signals:
        arrays["signal.eos"] = np.concatenate([e.T for e in EOS])
    queries = {"vectors": np.concatenate(QUERIES), "offsets": offsets(QUERIES)}
    pages_file, queries_file = folder / f"pages{suffix}", folder / f"queries{suffix}"
    if suffix == ".npz":
        np.savez(pages_file, ids=np.array(IDS), **arrays)
        np.savez(queries_file, **queries)
    elif suffix == ".safetensors":
        save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, pages_file, metadata={"ids": "\n".join(IDS)})
        save_file(queries, queries_file)
    else:
        columns = {"id": IDS, "vectors": [p.tolist() for p in PAGES], "grid": [list(g) for g in GRIDS]}
        if signals:
            columns["signal.eos"] = [e.tolist() for e in EOS]
        pq.write_table(pa.table(columns), pages_file)
        pq.write_table(pa.table({"id": ["0", "1"], "vectors": [q.tolist() for q in QUERIES]}), queries_file)
    return pages_file, queries_file


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".parquet"])
def test_every_format_gives_the_same_store(tmp_path, suffix):
    pages, queries = write(tmp_path, suffix)
    options = ["--out", str(tmp_path / "store"), "--name", "mine", "--vectors", "float32", "--json"]
    result = CliRunner().invoke(app, ["import-vectors", str(pages), str(queries), *options])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)[0]["vectors"] == sum(LENGTHS)
    store = Store(tmp_path / "store")
    assert store.page_ids == ("a", "b", "c")
    for index, page in enumerate(store.pages()):
        assert torch.equal(page.vectors, torch.from_numpy(PAGES[index]))
        assert torch.equal(page.signals["eos"], torch.from_numpy(EOS[index]))
        assert page.grid == GRIDS[index]
    assert torch.equal(store.query(0), torch.from_numpy(QUERIES[0]))


def test_methods_whose_signals_are_absent_are_refused_by_name(tmp_path):
    pages, queries = write(tmp_path, ".npz", signals=False)
    store = import_vectors(pages, queries, tmp_path / "store", name="mine")
    assert store.signals == {}
    with pytest.raises(PrunerError, match=r"pruner 'eos.*' needs eos, which the store does not have"):
        require(parse("eos"), store.signals, "the store")
    require(parse("kmeans"), store.signals, "the store")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": np.array([0, 6, 5, 19])}, "offsets must rise from 0 to the 19 rows"),
        ({"offsets": None}, "no array 'offsets'"),
        ({"grids": np.array([[2, 3]])}, r"grids must be \[3, 2\]"),
        ({"signal.eos": np.ones((4, 2))}, r"signal.eos must be \[19, rows\]"),
        ({"signals": np.ones((19, 2))}, "unknown array 'signals'; signals are named signal.<name>"),
    ],
)
def test_mistakes_in_a_file_are_named(tmp_path, change, message):
    arrays = {"vectors": np.concatenate(PAGES), "offsets": offsets(PAGES), **change}
    np.savez(tmp_path / "pages.npz", **{k: v for k, v in arrays.items() if v is not None})
    with pytest.raises(StoreError, match=message):
        read_vectors(tmp_path / "pages.npz")


def test_query_vectors_must_fit_the_pages(tmp_path):
    pages, _ = write(tmp_path, ".npz")
    np.savez(tmp_path / "other.npz", vectors=np.ones((2, 7)), offsets=np.array([0, 2]))
    with pytest.raises(StoreError, match=r"query '0': vectors are \[2, 7\], but the pages have 5 columns"):
        import_vectors(pages, tmp_path / "other.npz", tmp_path / "store", name="mine")


@pytest.fixture
def imported(tmp_path):
    """A benchmark's vectors as files (an encoded store read back, pages in another order), and as an imported store."""
    pages = write_data_set(tmp_path / "pages", range(70), queries=12)
    (data_set,) = load_benchmark(str(pages)).data_sets
    store = encode(registry.load(str(write_backbone(tmp_path))), data_set, tmp_path / "encoded")
    for name, count, ids, read in (
        ("pages", len(store), store.page_ids, lambda i: store.page(i).vectors),
        ("queries", len(store.query_ids), store.query_ids, store.query),
    ):
        order = list(reversed(range(count)))
        parts = [read(i).numpy() for i in order]
        arrays = {"ids": np.array([ids[i] for i in order]), "vectors": np.concatenate(parts), "offsets": offsets(parts)}
        np.savez(tmp_path / f"{name}.npz", **arrays)
    options = ["--out", str(tmp_path / "mine"), "--name", "my-retriever"]
    files = [str(tmp_path / "pages.npz"), str(tmp_path / "queries.npz")]
    assert CliRunner().invoke(app, ["import-vectors", *files, *options]).exit_code == 0
    return tmp_path


METHODS = ["--pruner", "first_k", "--pruner", "kmeans", "--budgets", "0.2", "--json"]


def evaluated(folder, backbone, *more, benchmark="pages"):
    places = ["--store", str(folder / "stores"), "--out", str(folder / f"run of {backbone[:5]}{len(more)}")]
    options = ["--backbone", backbone, "--benchmark", str(folder / benchmark), "--workers", "1", *METHODS]
    result = CliRunner().invoke(app, ["evaluate", *options, *places, *more], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["rows"]


@pytest.mark.slow
def test_imported_vectors_are_evaluated_as_the_model_that_made_them_is(imported):
    rows = evaluated(imported, f"store={imported / 'mine'}")
    (store,) = (imported / "stores").glob("my-retriever--pages--*")
    (encoded,) = map(Store, (imported / "encoded").iterdir())
    assert Store(store).page_ids == encoded.page_ids
    assert torch.equal(Store(store).page(7).vectors, encoded.page(7).vectors)
    model = evaluated(imported, str(imported / "toy_backbone.py"))
    for found, truth in zip(rows, model, strict=True):
        assert {**found, "prune_ms_per_page": 0} == {**truth, "prune_ms_per_page": 0}
    assert 0.2 < rows[0]["ndcg@5"] <= 1
    assert evaluated(imported, f"store={imported / 'mine'}") == rows, "found again, not written again"


def test_imported_vectors_are_calibrated_on_a_held_out_share_of_themselves(imported):
    rows = evaluated(
        imported, f"store={imported / 'mine'}", "--calibration", "held-out", "--pruner", "adaptive(random)"
    )
    assert "adaptive(random)" in {row["method"] for row in rows}


def test_same_pages_are_linked_and_take_no_room(imported):
    (encoded,) = map(Store, (imported / "encoded").iterdir())
    evaluated(imported, f"store={encoded.folder}")
    (linked,) = (imported / "stores").glob("toy--pages--*")
    assert (linked / "pages-00001.safetensors").samefile(encoded.folder / "pages-00001.safetensors")


def test_ids_that_do_not_match_are_named(imported):
    write_data_set(imported / "others", range(60, 80), queries=3)
    said = (
        r"mine has no vectors of 10 of the 20 pages of others, the first is 'page-70'; its own ids are like 'page-69'"
    )
    with pytest.raises(StoreError, match=said):
        evaluated(imported, f"store={imported / 'mine'}", benchmark="others")
    with pytest.raises(StoreError, match=r"needs the folder of a store: store=FOLDER"):
        evaluated(imported, "store")


def flip(path):
    """Some bits of a file's vectors, in place: whatever is linked to it is damaged too."""
    with path.open("r+b") as file:
        file.seek(-40, 2)
        file.write(bytes(40))


def encoded_from(folder, source, *more):
    options = ["--backbone", f"store={source}", "--benchmark", str(folder / "pages"), "--store", str(folder / "stores")]
    result = CliRunner().invoke(app, ["encode", *options, "--json", *more], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return Store(json.loads(result.stdout)[0]["store"])


@pytest.mark.parametrize("file", ["pages-00001.safetensors", "queries.safetensors"])
def test_damage_of_looked_up_vectors_is_named_and_mended(imported, file):
    made = encoded_from(imported, imported / "mine")
    flip(made.folder / file)
    with pytest.raises(StoreError, match=rf"damaged in .*{file}.*--repair"):
        evaluated(imported, f"store={imported / 'mine'}")
    assert encoded_from(imported, imported / "mine", "--repair").verify() == []


def test_an_imported_store_that_is_damaged_is_not_read_until_it_is_imported_again(imported):
    source = imported / "mine"
    flip(source / "pages-00000.safetensors")
    for more in ([], ["--repair"]):
        with pytest.raises(StoreError, match=r"the store .*mine itself is damaged: pages-00000.*import-vectors"):
            encoded_from(imported, source, *more)
    files = [str(imported / "pages.npz"), str(imported / "queries.npz")]
    CliRunner().invoke(app, ["import-vectors", *files, "--out", str(source), "--name", "my-retriever"])
    assert Store(source).verify() == []
    assert encoded_from(imported, source).verify() == []


def test_a_damaged_shard_is_not_linked_again_from_where_it_is_damaged_too(imported):
    (encoded,) = map(Store, (imported / "encoded").iterdir())
    linked = encoded_from(imported, encoded.folder)
    flip(linked.folder / "pages-00001.safetensors")
    for more in ([], ["--repair"]):
        with pytest.raises(StoreError, match=r"the store .*encoded.* itself is damaged: pages-00001"):
            encoded_from(imported, encoded.folder, *more)


def test_an_imported_store_without_a_file_says_to_import_it_again(imported):
    (imported / "mine" / "pages-00001.safetensors").unlink()
    with pytest.raises(StoreError, match=r"missing or cut short.*import-vectors"):
        encoded_from(imported, imported / "mine")
