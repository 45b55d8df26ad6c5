"""The index that a run advises: what a search finds in it is what the run measured, byte for byte and killed or not."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import harness
from harness.cli import app
from harness.page_index import files, reader, writer
from harness.store.encoded_page import EncodedPage
from harness.store.format import StoreError
from harness.store.reader import Store
from harness.store.writer import StoreWriter
from pruners import PruneBoardError
from tests.harness.evaluation.toy import write_backbone, write_data_set

PAGES = 50
METHODS = ["eos", "docpruner", "kmeans", "random", "hpc", "oracle"]


@dataclass(frozen=True)
class Made:
    results: harness.Results
    stores: Path

    @property
    def store(self) -> Store:
        return writer.store_of(self.results, None, self.stores)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("index")
    results = harness.evaluate(
        METHODS,
        backbone=str(write_backbone(folder)),
        benchmark=str(write_data_set(folder / "pages", range(PAGES), queries=40)),
        calibration=str(write_data_set(folder / "calibration", range(100, 140), queries=40)),
        codecs=["float16", "int8", "pq(4)"],
        budgets=[0.1, 0.3],
        store=folder / "stores",
        out=folder / "run",
        workers=1,
    )
    assert not results.failures
    return Made(results, folder / "stores")


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (files, reader, writer):
        monkeypatch.setattr(module, "SHARD", 16)
    monkeypatch.setattr(writer, "PIECE", 8)


@pytest.mark.parametrize(
    ("method", "budget"),
    [
        ("full | int8", 1.0),
        *itertools.product(["eos", "docpruner", "random", "kmeans", "eos | int8", "kmeans | pq(4)"], [0.1, 0.3]),
    ],
)
def test_a_search_finds_the_pages_that_the_run_recorded(made: Made, tmp_path: Path, method: str, budget: float) -> None:
    index = harness.write_index(made.results, method, budget=budget, out=tmp_path / "index", store=made.stores)
    asked = 0.9999 if budget == 1 else budget  # a codec alone has one budget, by which it is told from the full model
    (summary,) = [row for row in made.results.rows if (row["method"], row["budget"]) == (method, asked)]
    if method != "random":  # whose size is the mean of five trials
        assert index.bytes == pytest.approx(summary["bytes_per_page"] * PAGES)
    store = made.store
    assert index.page_ids == store.page_ids
    rows = made.results.per_query
    rows = rows[(rows["method"] == method) & (rows["budget"] == asked) & (rows["trial"] == 0)].set_index("query")
    for i, query in enumerate(store.query_ids):
        found, recorded = index.search(store.query(i).numpy(), PAGES), list(rows.loc[query, "top_10"])
        if method == "kmeans":  # measured as computed, stored in float16: pages that nearly tie may change places
            scores = dict(found)
            assert [scores[page] for page in recorded] == pytest.approx([score for _, score in found[:10]], abs=1e-3)
        else:
            assert [page for page, _ in found[:10]] == recorded
        page, score = found[0]
        plain = np.max(index.codec.query(store.query(i).numpy()) @ index.vectors(page).T, axis=1).sum()
        assert score == pytest.approx(plain, rel=1e-5)


class Killed(BaseException):
    """Nobody catches it."""


def test_who_was_killed_goes_on_and_writes_the_same_bytes(made: Made, tmp_path: Path) -> None:
    written: list[int] = []

    @contextmanager
    def killing(what: str, *, total: int, done: int) -> Iterator[Callable[..., None]]:
        def advance(pages: int, note: str = "") -> None:
            written.append(pages)
            if len(written) == 5:  # a file of two pieces was written twice
                raise Killed

        yield advance

    options = {"budget": 0.3, "store": made.stores, "workers": 1}
    harness.write_index(made.results, "kmeans | int8", out=tmp_path / "whole", **options)
    with pytest.raises(Killed):
        harness.write_index(made.results, "kmeans | int8", out=tmp_path / "killed", progress=killing, **options)
    with pytest.raises(PruneBoardError, match="is no finished index"):
        harness.load_index(tmp_path / "killed")
    harness.write_index(made.results, "kmeans | int8", out=tmp_path / "killed", progress=killing, **options)
    assert written == [8] * 5 + [8, 8, 2], "the third file is packed again"
    whole, killed = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("whole", "killed")
    )
    assert whole.keys() == killed.keys()
    assert all(whole[name] == killed[name] for name in whole if name not in ("checksums.txt", ".lock"))


def test_pages_of_another_store_are_indexed_too_if_the_backbone_is_the_same(made: Made, tmp_path: Path) -> None:
    (other,) = made.stores.glob("*calibration*")
    index = harness.write_index(made.results, "docpruner", out=tmp_path / "index", pages=other)
    assert index.page_ids == Store(other).page_ids
    with pytest.raises(PruneBoardError, match="holds another index"):
        harness.write_index(made.results, "eos", out=tmp_path / "index", pages=other)
    folder = tmp_path / "another"
    folder.mkdir()
    source = write_backbone(folder)
    source.write_text(source.read_text().replace('"toy"', '"another"'))
    backbone = harness.load_backbone(str(source))
    assert backbone.card.name == "another"
    benchmark = str(write_data_set(folder / "pages", range(5)))
    (foreign,) = harness.encode(backbone, benchmark, store=folder / "stores").values()
    with pytest.raises(StoreError, match="was encoded by another backbone than the run's: name 'another'"):
        harness.write_index(made.results, "eos", out=tmp_path / "foreign", pages=foreign.folder)


@pytest.mark.parametrize(
    ("method", "budget", "said"),
    [
        ("oracle", 0.1, "looks at a page's queries"),
        ("hpc", 0.1, "stores vectors in a form of its own"),
        ("eos", 0.2, r"was not measured at a budget of 0\.2; it was at 0\.1, 0\.3"),
        ("eoss", 0.1, "did you mean eos"),
    ],
)
def test_what_cannot_be_indexed_is_said(made: Made, tmp_path: Path, method: str, budget: float, said: str) -> None:
    with pytest.raises(PruneBoardError, match=said):
        harness.write_index(made.results, method, budget=budget, out=tmp_path / "index", store=made.stores)
    assert not (tmp_path / "index").exists()


def test_imported_pages_of_another_name_or_width_are_refused(made: Made, tmp_path: Path) -> None:
    for name, dim, said in (("another", 16, "name 'another'"), ("toy", 8, "dim 8")):
        folder = tmp_path / f"{name}-{dim}"
        with StoreWriter(folder, {"imported": {"name": name}}, ["a"]) as store:
            store.add("a", EncodedPage(torch.nn.functional.normalize(torch.randn(20, dim), dim=1)))
            store.add_queries(["q"], [torch.randn(2, dim)])
        with pytest.raises(StoreError, match=f"another backbone than the run's: {said}"):
            harness.write_index(made.results, "random", out=tmp_path / "index", pages=folder)


def test_a_damaged_store_is_named(made: Made, tmp_path: Path) -> None:
    stores = tmp_path / "stores"
    shutil.copytree(made.stores, stores)
    path = writer.store_of(made.results, None, stores).folder / "pages-00000.safetensors"
    data = bytearray(path.read_bytes())
    data[-40] ^= 128
    path.write_bytes(data)
    with pytest.raises(StoreError, match=r"pages-00000\.safetensors is damaged"):
        harness.write_index(made.results, "eos", out=tmp_path / "index", store=stores)


def test_files_of_another_order_do_not_become_part_of_an_index(made: Made, tmp_path: Path, monkeypatch) -> None:
    out = {"out": tmp_path / "index", "store": made.stores}
    harness.write_index(made.results, "eos", budget=0.3, **out)
    with pytest.raises(PruneBoardError, match=r"holds another index.* \(budget differ\)"):
        harness.write_index(made.results, "eos", budget=0.1, **out)
    with monkeypatch.context() as other:
        other.setattr(writer, "measuring", lambda: {"project": "another", "libraries": ""})
        with pytest.raises(PruneBoardError, match="holds another index, or one begun with other code"):
            harness.write_index(made.results, "eos", budget=0.3, **out)
    (tmp_path / "index" / files.ORDER).unlink()
    with pytest.raises(PruneBoardError, match=r"is not empty .* and holds no index"):
        harness.write_index(made.results, "eos", budget=0.1, **out)


def test_a_folder_with_anything_else_in_it_is_left_as_it_is(made: Made) -> None:
    """A store's files have such names too."""
    folder = made.store.folder
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(PruneBoardError, match=r"is not empty .* and holds no index: choose another --out"):
        harness.write_index(made.results, "eos", out=folder, store=made.stores)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_who_was_killed_before_anything_was_ordered_begins_anew(made: Made, tmp_path: Path) -> None:
    for name in (".lock", "checksums.txt", ".order.json.here-1.tmp"):
        (tmp_path / name).touch()
    assert len(harness.write_index(made.results, "eos", out=tmp_path, store=made.stores)) == PAGES


def test_what_is_asked_of_an_index_must_fit(made: Made, tmp_path: Path) -> None:
    index = harness.write_index(made.results, "eos", out=tmp_path / "index", store=made.stores)
    with pytest.raises(PruneBoardError, match=r"a query is \[tokens, 16\] here, not \[16\]"):
        index.search(np.zeros(16))
    with pytest.raises(PruneBoardError, match="has no page 'nowhere'"):
        index.vectors("nowhere")
    with pytest.raises(PruneBoardError, match="give one of the two"):
        harness.write_index(made.results, "eos", out=tmp_path / "two", pages=made.store.folder, data_set="pages")


def test_another_count_than_the_run_recorded_is_an_error(made: Made, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(writer, "_recorded", lambda *run: np.full(PAGES, 1))
    with pytest.raises(PruneBoardError, match=r"page 'page-0': \d+ vectors are kept, and the run had kept 1"):
        harness.write_index(made.results, "eos", out=tmp_path / "index", store=made.stores)


def test_a_damaged_file_is_named_and_written_again(made: Made, tmp_path: Path) -> None:
    index = harness.write_index(made.results, "eos", out=tmp_path / "index", store=made.stores)
    index.verify()
    path = tmp_path / "index" / files.shard_name(1)
    before = path.read_bytes()
    data = bytearray(before)
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(PruneBoardError, match=r"pages-00001\.safetensors is not what was written"):
        index.verify()
    harness.write_index(made.results, "eos", out=tmp_path / "index", store=made.stores).verify()
    assert path.read_bytes() == before


def test_the_command(made: Made, tmp_path: Path) -> None:
    words = ["index", str(made.results.folder), "eos | int8", "--out", str(tmp_path / "index")]
    result = CliRunner().invoke(app, [*words, "--store", str(made.stores), "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert (facts["pages"], facts["method"], facts["budget"]) == (PAGES, "eos | int8", 0.1)
    said = CliRunner().invoke(app, [*words, "--store", str(made.stores)], catch_exceptions=False)
    assert f"{PAGES} pages, {facts['vectors']} vectors" in said.output
