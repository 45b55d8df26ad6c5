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

from harness.cli import app
from harness.store.format import StoreError
from harness.store.import_vectors import import_vectors, read_vectors
from harness.store.reader import Store
from pruners import PrunerError, parse, require

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
