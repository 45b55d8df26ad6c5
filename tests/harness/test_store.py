"""A store gives back what was put in, is complete or says so, and is the same bytes however often interrupted."""

from __future__ import annotations

import json
import os
import pickle
import resource
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.store import reader
from harness.store.encoded_page import EncodedPage
from harness.store.format import MANIFEST, StoreError, store_key
from harness.store.reader import Store
from harness.store.sidecar import read_manifest
from harness.store.writer import StoreWriter
from pruners.core.errors import PruneBoardError

IDENTITY = {"backbone": {"name": "numbers"}, "benchmark": {"name": "made up"}}


def some_page(seed: int, *, dim: int = 8) -> EncodedPage:
    generator = torch.Generator().manual_seed(seed)
    rows, cols = 2 + seed % 3, 3
    tokens = rows * cols
    return EncodedPage(
        vectors=torch.nn.functional.normalize(torch.randn(tokens, dim, generator=generator), dim=-1),
        grid=None if seed % 5 == 4 else (rows, cols),
        signals={"indegree": torch.rand(4, tokens, generator=generator), "ink": torch.rand(1, tokens)},
        prompt=torch.randn(seed % 3, dim, generator=generator),
    )


def write_store(folder: Path, pages: int = 10, *, stop_after: int | None = None, **options) -> None:
    torch.manual_seed(0)
    ids = [f"page {i}" for i in range(pages)]
    with StoreWriter(folder, IDENTITY, ids, shard_pages=4, **options) as writer:
        for count, page_id in enumerate(writer.wanted()):
            if count == stop_after:
                raise KeyboardInterrupt
            torch.manual_seed(int(page_id.split()[1]))
            writer.add(page_id, some_page(int(page_id.split()[1])), image=f"hash of {page_id}")
        if writer.manifest.queries is None:
            writer.add_queries(["q0", "q1"], [some_page(90).vectors, some_page(91).vectors])


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize(("dtype", "rounding"), [("float16", 1e-3), ("float32", 0)])
def test_pages_come_back_as_they_were(tmp_path, dtype, rounding):
    write_store(tmp_path, vector_dtype=dtype)
    store = Store(tmp_path)
    assert len(store) == 10
    assert store.signals == {"indegree": 4, "ink": 1}
    for index, page in enumerate(store.pages()):
        torch.manual_seed(index)
        truth = some_page(index)
        assert page.id == f"page {index}"
        assert page.grid == truth.grid
        torch.testing.assert_close(page.vectors, truth.vectors, atol=rounding, rtol=0)
        torch.testing.assert_close(store.prompt(index), truth.prompt, atol=2 * rounding, rtol=0)
        assert torch.equal(page.signals["indegree"], truth.signals["indegree"])  # signals are exact at any precision
        assert torch.equal(page.signals["ink"], truth.signals["ink"])
    torch.testing.assert_close(store.query(1), some_page(91).vectors, atol=rounding, rtol=0)
    assert store.query_ids == ("q0", "q1")
    assert store.image_hashes[3] == "hash of page 3"


@settings(max_examples=25, deadline=None)
@given(lengths=st.lists(st.integers(1, 6), min_size=1, max_size=9), shard_pages=st.integers(1, 5))
def test_any_lengths_in_any_shards(tmp_path_factory, lengths, shard_pages):
    folder = tmp_path_factory.mktemp("store")
    pages = [torch.rand(length, 3) for length in lengths]
    ids = [str(i) for i in range(len(pages))]
    with StoreWriter(folder, IDENTITY, ids, shard_pages=shard_pages, vector_dtype="float32") as writer:
        for page_id in writer.wanted():
            writer.add(page_id, EncodedPage(vectors=pages[int(page_id)]))
        writer.add_queries(["q"], [torch.rand(2, 3)])
    store = Store(folder)
    assert all(torch.equal(store.page(i).vectors, page) for i, page in enumerate(pages))


@pytest.mark.parametrize("stop_after", range(10))
def test_an_interrupted_store_goes_on_and_ends_identical(tmp_path, stop_after):
    write_store(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        write_store(tmp_path / "broken", stop_after=stop_after)
    with pytest.raises(StoreError, match="not finished"):
        Store(tmp_path / "broken")
    write_store(tmp_path / "broken")
    assert content(tmp_path / "broken") == content(tmp_path / "whole")


def test_leftovers_of_a_killed_write_disappear(tmp_path):
    write_store(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        write_store(tmp_path / "broken", stop_after=5)
    for name in (".pages-00001.safetensors.there-17.tmp", ".pages-00001.json.there-17.tmp", ".manifest.json.x-1.tmp"):
        (tmp_path / "broken" / name).write_bytes(b"half a shard")
    (tmp_path / "broken" / "pages-00001.safetensors").write_bytes(b"renamed, but its sidecar was never written")
    write_store(tmp_path / "broken")
    assert content(tmp_path / "broken") == content(tmp_path / "whole")


@pytest.mark.skipif(sys.platform != "linux", reason="Linux says what a process has mapped")
def test_of_a_long_store_few_files_are_mapped_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "OPEN", 3)
    write_store(tmp_path, pages=40)
    store = Store(tmp_path)
    for i, page in enumerate(store.pages()):
        assert torch.equal(page.vectors, Store(tmp_path).page(i).vectors)
        mapped = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()}
        assert 1 <= sum(name.startswith(str(tmp_path)) for name in mapped) <= 3


def test_a_damaged_shard_is_named_and_made_again_only_when_asked(tmp_path):
    write_store(tmp_path)
    good, path = content(tmp_path), tmp_path / "pages-00001.safetensors"
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    assert Store(tmp_path).verify() == ["pages-00001.safetensors"]
    with StoreWriter(tmp_path, IDENTITY, [f"page {i}" for i in range(10)], shard_pages=4) as writer:
        assert writer.wanted() == []
        writer.forget(writer.damaged())
        assert writer.wanted() == [f"page {i}" for i in range(4, 8)]
    write_store(tmp_path)
    assert content(tmp_path) == good


def test_a_shortened_shard_is_refused_at_once(tmp_path):
    write_store(tmp_path)
    path = tmp_path / "pages-00002.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StoreError, match=r"pages-00002\.safetensors is missing or cut short"):
        Store(tmp_path)


@pytest.mark.parametrize("folder", [".", "not there"])
def test_a_folder_without_a_store_is_named_with_what_makes_one(tmp_path, folder):
    """An empty folder, and one that does not exist."""
    with pytest.raises(StoreError) as caught:
        Store(tmp_path / folder)
    said = f"{tmp_path / folder} is no store: it has no manifest.json. Make one with `harness encode`"
    assert str(caught.value) == said
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_was_begun_says_how_far_it_is(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        write_store(tmp_path, stop_after=9)
    with pytest.raises(StoreError, match=r"is not finished \(8 of 10 pages\)"):
        Store(tmp_path)


def test_other_settings_are_never_mixed(tmp_path):
    write_store(tmp_path)
    with (
        pytest.raises(StoreError, match="made with other settings"),
        StoreWriter(tmp_path, {**IDENTITY, "max_visual_tokens": 9}, ["page 0"], shard_pages=4),
    ):
        pass
    assert store_key({"a": 1, "b": 2}) == store_key({"b": 2, "a": 1}) != store_key({"a": 1, "b": 3})


@pytest.mark.parametrize("edit", [('"name": "numbers"', '"name": "others"'), ('"page 0"', '"page O"')])
def test_an_edited_manifest_is_refused(tmp_path, edit):
    write_store(tmp_path)
    text = (tmp_path / MANIFEST).read_text()
    assert edit[0] in text
    (tmp_path / MANIFEST).write_text(text.replace(*edit))
    with pytest.raises(StoreError, match=r"manifest\.json is damaged \(its checksum is another: it was edited"):
        Store(tmp_path)


def test_settings_that_do_not_give_the_key_are_refused_whatever_the_checksum(tmp_path):
    write_store(tmp_path)
    text = (tmp_path / MANIFEST).read_text().replace('"name": "numbers"', '"name": "others"')
    above, _, _ = text.rpartition(',\n"checksum"')
    (tmp_path / MANIFEST).write_text(above + "\n}\n")
    with pytest.raises(StoreError, match="was edited: its settings"):
        Store(tmp_path)


def test_other_library_versions_do_not_finish_a_store(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        write_store(tmp_path, stop_after=5)
    fields = json.loads((tmp_path / MANIFEST).read_text())
    del fields["checksum"]
    fields["libraries"]["torch"] = "1.0"
    (tmp_path / MANIFEST).write_text(json.dumps(fields))
    with pytest.raises(StoreError, match=r"was begun with \{'torch': '1\.0'\}"):
        write_store(tmp_path)


def test_one_writer_at_a_time(tmp_path):
    ids = ["page 0"]
    with (
        StoreWriter(tmp_path, IDENTITY, ids, shard_pages=4),
        pytest.raises(StoreError, match="another process is writing"),
        StoreWriter(tmp_path, IDENTITY, ids, shard_pages=4),
    ):
        pass


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (EncodedPage(torch.full((2, 8), float("nan"))), r"page 'page 0': vectors contain NaN"),
        (EncodedPage(torch.full((2, 8), 1e6)), r"beyond float16"),
        (EncodedPage(torch.ones(6, 8), grid=(2, 2)), r"a grid of \(2, 2\) does not hold its 6 vectors"),
        (EncodedPage(torch.ones(6, 8), signals={"eos": torch.ones(2, 5)}), r"signal 'eos' must be \[rows, 6\]"),
        (EncodedPage(torch.ones(6)), r"must be \[N, d\]"),
    ],
)
def test_a_bad_page_is_named(tmp_path, page, message):
    with pytest.raises(StoreError, match=message), StoreWriter(tmp_path, IDENTITY, ["page 0"], shard_pages=4) as writer:
        writer.add("page 0", page)


def test_pages_must_come_in_order_and_all(tmp_path):
    with (
        pytest.raises(StoreError, match="'b' was added where 'a' was wanted"),
        StoreWriter(tmp_path / "1", IDENTITY, ["a", "b"]) as writer,
    ):
        writer.add("b", some_page(0))
    with (
        pytest.raises(StoreError, match="do not fill their shard"),
        StoreWriter(tmp_path / "2", IDENTITY, ["a", "b"]) as writer,
    ):
        writer.add("a", some_page(0))
    with pytest.raises(StoreError, match="'a' occurs twice"):
        StoreWriter(tmp_path / "3", IDENTITY, ["a", "a"])


def test_disk_full_keeps_what_was_done(tmp_path):
    """A child process may write files of 2 KB at most: the manifest fits, a shard of wide vectors does not."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            with StoreWriter(tmp_path, IDENTITY, ["a", "b"], shard_pages=1) as writer:
                writer.add("a", some_page(0))
                resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
                wide = {"indegree": torch.ones(4, 600), "ink": torch.ones(1, 600)}
                writer.add("b", EncodedPage(torch.ones(600, 8), signals=wide))
        except PruneBoardError as error:
            status = (
                0
                if "no room for pages-00001.safetensors (pages 'b' to 'b'" in str(error) and "kept" in str(error)
                else 2
            )
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    left = sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".lock")
    assert left == [MANIFEST, "pages-00000.json", "pages-00000.safetensors"]
    assert list(read_manifest(tmp_path).shards) == [0]


def test_a_store_travels_to_a_worker_process(tmp_path):
    write_store(tmp_path)
    store = Store(tmp_path)
    store.page(0)
    assert torch.equal(pickle.loads(pickle.dumps(store)).page(7).vectors, store.page(7).vectors)


def test_opening_reads_no_vectors(tmp_path):
    """A store of 50 MB opens without its pages entering memory, and one page maps in only its own part."""
    page = EncodedPage(torch.ones(1000, 128))
    ids = [str(i) for i in range(200)]
    with StoreWriter(tmp_path, IDENTITY, ids) as writer:
        for page_id in writer.wanted():
            writer.add(page_id, page)
        writer.add_queries(["q"], [torch.ones(3, 128)])

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident()
    store = Store(tmp_path)
    assert resident() - before < 2e6
    store.page(150)
    assert resident() - before < 12e6
    assert np.isclose(store.page(199).vectors.sum().item(), 128000)


def test_a_forked_process_does_not_keep_its_parents_lock(tmp_path: Path) -> None:
    """Workers of a run that was killed may live a moment longer; the run that follows must not wait for them."""
    with StoreWriter(tmp_path, IDENTITY, ["page 0"]) as writer:
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(tell, b"here")
            signal.pause()
        os.read(told, 4)
        try:
            assert writer._lock is not None
            os.close(writer._lock._context.lock_file_fd)  # as the kernel does for a process that was killed
            StoreWriter(tmp_path, IDENTITY, ["page 0"]).__enter__().__exit__(None, None, None)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        writer._lock = None
