"""Several processes write parts of one store at once: the same bytes as one process, whoever is killed."""

from __future__ import annotations

import errno
import json
import os
import signal
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from click.testing import Result
from typer.testing import CliRunner

from harness import files
from harness.bench.store import measure, open_large
from harness.cli import app
from harness.progress import quiet
from harness.store.encoded_page import EncodedPage
from harness.store.format import MANIFEST, StoreError
from harness.store.part import Part
from harness.store.reader import Store
from harness.store.sidecar import read_manifest
from harness.store.writer import StoreWriter
from pruners.core.errors import PruneBoardError
from tests.harness.evaluation.toy import write_backbone, write_data_set
from tests.harness.test_store import IDENTITY, content, some_page, write_store

IDS = [f"page {i}" for i in range(150)]


def write_part(folder: Path, part: Part, ids: list[str] = IDS, before=lambda count: None, **options) -> None:
    """`before` is told how many pages were added, before each."""
    with StoreWriter(folder, IDENTITY, ids, shard_pages=4, part=part, **options) as writer:
        for count, page_id in enumerate(writer.wanted()):
            before(count)
            number = int(page_id.split()[1])
            torch.manual_seed(number)
            writer.add(page_id, some_page(number), image=f"hash of {page_id}")
        if writer.wants_queries:
            writer.add_queries(["q0", "q1"], [some_page(90).vectors, some_page(91).vectors])


def start(folder: Path, part: Part, stuck_at: int | None = None) -> tuple[int, int]:
    """A process that writes a part: its id, and a pipe on which it says that it has come to a page and stays there."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1

        def before(count: int) -> None:
            if count == stuck_at:
                os.write(tell, b"here")
                signal.pause()

        try:
            write_part(folder, part, before=before)
            status = 0
        finally:
            os._exit(status)
    os.close(tell)
    return pid, told


def test_eight_parts_at_once_three_of_them_killed_end_as_one_process_does(tmp_path):
    write_part(tmp_path / "one", Part())
    stuck = {Part(1, 8): 0, Part(4, 8): 6, Part(8, 8): 13}  # before any, in the second shard, in the last
    parts = [Part(number, 8) for number in range(1, 9)]
    started = {part: start(tmp_path / "many", part, stuck.get(part)) for part in parts}
    for part in stuck:
        pid, told = started[part]
        assert os.read(told, 4) == b"here"
        os.kill(pid, signal.SIGKILL)
        assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
    assert [os.waitpid(started[part][0], 0)[1] for part in parts if part not in stuck] == [0] * 5
    with pytest.raises(StoreError, match=r"is not finished \(116 of 150 pages\)"):
        Store(tmp_path / "many")
    again = [start(tmp_path / "many", part)[0] for part in stuck]
    assert [os.waitpid(pid, 0)[1] for pid in again] == [0] * 3
    assert content(tmp_path / "many") == content(tmp_path / "one")


def test_what_is_there_is_not_written_again(tmp_path, monkeypatch):
    for number in (1, 3):
        write_part(tmp_path, Part(number, 4))
    names: list[str] = []
    write = files.write_atomically
    monkeypatch.setattr(
        "harness.store.writer.write_atomically",
        lambda path, *rest, **more: (names.append(path.name), write(path, *rest, **more)),
    )
    write_part(tmp_path, Part())  # the same command without a part finishes
    assert names == [f"pages-{i:05d}.safetensors" for i in [*range(10, 19), *range(29, 38)]]
    assert len(Store(tmp_path)) == 150


@pytest.mark.parametrize("of", [1, 2, 3, 8, 37, 38, 39, 200])
def test_parts_hold_every_shard_once_and_the_first_is_never_empty(of):
    ranges = [Part(number, of).shards(38) for number in range(1, of + 1)]
    assert [shard for part in ranges for shard in part] == list(range(38))
    assert len(ranges[0]) >= 1
    assert max(map(len, ranges)) - min(map(len, ranges)) <= 1


@pytest.mark.parametrize(("text", "said"), [("3", "is no part"), ("0/8", "no part 0/8"), ("9/8", "no part 9/8")])
def test_a_part_that_there_is_not(text, said):
    with pytest.raises(StoreError, match=said):
        Part.parse(text)
    assert Part.parse("3/8") == Part(3, 8)


def test_more_parts_than_shards(tmp_path):
    write_store(tmp_path / "whole")
    ids = [f"page {i}" for i in range(10)]
    for number in (5, 4, 3, 2, 1):
        write_part(tmp_path / "parts", Part(number, 5), ids=ids)
    assert content(tmp_path / "parts") == content(tmp_path / "whole")


@pytest.mark.parametrize("second", [Part(3, 8), Part(2, 4), Part(1, 1)])
def test_a_part_twice_or_one_that_overlaps_it_is_refused(tmp_path, second):
    with StoreWriter(tmp_path, IDENTITY, IDS, shard_pages=4, part=Part(3, 8)) as writer:
        with (
            pytest.raises(StoreError, match=r"another process is writing part 3/8 of the store .*; wait for it"),
            StoreWriter(tmp_path, IDENTITY, IDS, shard_pages=4, part=second),
        ):
            pass
        write_part(tmp_path, Part(4, 8))  # its neighbour is not
        assert writer.wanted()[0] == "page 40"


def test_where_files_cannot_be_locked_a_killed_part_is_started_again(tmp_path, monkeypatch):
    """A lock that outlived its process would refuse the part for ever, on another machine than the one it died on."""

    def none_here(*call):
        raise OSError(errno.ENOSYS, "Function not implemented")

    write_part(tmp_path / "one", Part())
    monkeypatch.setattr("fcntl.flock", none_here)
    pid, told = start(tmp_path / "many", Part(2, 2), stuck_at=6)
    assert os.read(told, 4) == b"here"
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    monkeypatch.setattr("socket.gethostname", lambda: "another machine")
    for number in (2, 1):
        write_part(tmp_path / "many", Part(number, 2))
    assert content(tmp_path / "many") == content(tmp_path / "one")


def test_the_work_of_a_shard_does_not_grow_with_the_store(tmp_path, monkeypatch):
    """Bytes written a page, not time: twice the pages, twice the bytes (and not four times)."""
    written = {}
    write = files.write_atomically
    for pages in (400, 800):
        sizes: list[int] = []
        for module in ("writer", "format", "sidecar"):
            monkeypatch.setattr(
                f"harness.store.{module}.write_atomically",
                lambda path, data, *rest, sizes=sizes, **more: (
                    sizes.append(len(data)),
                    write(path, data, *rest, **more),
                ),
            )
        folder, ids = tmp_path / str(pages), [f"page {i}" for i in range(pages)]
        with StoreWriter(folder, IDENTITY, ids, shard_pages=2) as writer:
            seen = [len(sizes)]
            for page_id in writer.wanted():
                writer.add(page_id, EncodedPage(torch.ones(1, 4)))
                seen.append(len(sizes))
            writer.add_queries(["q"], [torch.ones(1, 4)])
        assert max(b - a for a, b in pairwise(seen)) == 2, "a shard and its sidecar"
        written[pages] = sum(sizes), len(sizes)
    assert written[800][0] < 2.05 * written[400][0]
    assert written[800][1] < 2.05 * written[400][1]


def test_ids_stand_once_in_the_manifest(tmp_path):
    write_store(tmp_path)
    assert (tmp_path / MANIFEST).read_text().count('"page 7"') == 1


@pytest.mark.parametrize("where", ["shards", "queries"])
def test_a_manifest_that_names_a_file_is_refused(tmp_path, where):
    """Files follow from numbers: a foreign path is never opened, and never deleted."""
    write_store(tmp_path / "store")
    (tmp_path / "x").write_text("another's")
    fields = json.loads((tmp_path / "store" / MANIFEST).read_text())
    del fields["checksum"]
    (fields["shards"]["1"] if where == "shards" else fields["queries"])["file"] = "../x"
    (tmp_path / "store" / MANIFEST).write_text(json.dumps(fields))
    for use in (lambda: Store(tmp_path / "store"), lambda: write_store(tmp_path / "store")):
        with pytest.raises(StoreError, match=r"is damaged .*'file'"):
            use()
    assert (tmp_path / "x").read_text() == "another's"


@pytest.mark.parametrize("index", ["-1", "3", "../x"])
def test_a_manifest_with_a_shard_that_has_no_pages_is_refused(tmp_path, index):
    write_store(tmp_path)
    fields = json.loads((tmp_path / MANIFEST).read_text())
    del fields["checksum"]
    fields["shards"][index] = fields["shards"].pop("2")
    (tmp_path / MANIFEST).write_text(json.dumps(fields))
    with pytest.raises(StoreError, match=r"is damaged .it has shards without pages|is damaged .invalid literal"):
        Store(tmp_path)


def test_a_sidecar_of_another_store_or_with_a_path_is_refused(tmp_path):
    for name in ("mine", "theirs"):
        write_part(tmp_path / name, Part(2, 4), about={"batch_size": len(name)})
    side = "pages-00012.json"
    own = (tmp_path / "mine" / side).read_bytes()
    (tmp_path / "mine" / side).write_bytes((tmp_path / "theirs" / side).read_bytes())
    with pytest.raises(StoreError, match=rf"{side} was written for a store that was begun otherwise.*Delete this file"):
        write_part(tmp_path / "mine", Part())
    fields = json.loads(own)
    fields["shard"]["file"] = "../../x"
    (tmp_path / "mine" / side).write_text(json.dumps(fields))
    with pytest.raises(StoreError, match=rf"{side} is damaged .*'file'"):
        write_part(tmp_path / "mine", Part())
    (tmp_path / "mine" / side).unlink()  # as the error says
    write_part(tmp_path / "mine", Part())
    assert len(Store(tmp_path / "mine")) == 150


def test_parts_of_other_widths_do_not_become_one_store(tmp_path):
    write_part(tmp_path, Part(2, 2))
    writer = StoreWriter(tmp_path, IDENTITY, IDS, shard_pages=4, part=Part(1, 2)).__enter__()
    for page_id in writer.wanted():
        writer.add(page_id, EncodedPage(torch.ones(1, 5)))
    writer.add_queries(["q"], [torch.ones(1, 5)])
    with pytest.raises(StoreError, match=r"speaks of 8 columns and signals .*of \(5, \{\}\)"):
        writer.__exit__(None, None, None)
    with pytest.raises(StoreError, match=r"Delete this file, and the same command encodes its pages again"):
        Store(tmp_path)


def test_a_part_with_other_libraries_is_refused(tmp_path, monkeypatch):
    write_part(tmp_path, Part(1, 2))
    monkeypatch.setattr("harness.store.writer.library_versions", lambda names: dict.fromkeys(names, "0"))
    with pytest.raises(StoreError, match=r"was begun with .* its halves might differ"):
        write_part(tmp_path, Part(2, 2))


def test_only_the_whole_is_mended(tmp_path):
    write_part(tmp_path, Part(2, 2))
    path = tmp_path / "pages-00020.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with StoreWriter(tmp_path, IDENTITY, IDS, shard_pages=4, part=Part(1, 2)) as first:
        assert first.damaged() == []
    with StoreWriter(tmp_path, IDENTITY, IDS, shard_pages=4, part=Part(2, 2)) as second:
        assert second.damaged() == [path.name]
        with pytest.raises(StoreError, match="leave --part away"):
            second.forget([path.name])
    with StoreWriter(tmp_path, IDENTITY, IDS, shard_pages=4) as whole:
        whole.forget(whole.damaged())
        assert "page 80" in whole.wanted()
    write_part(tmp_path, Part())
    assert Store(tmp_path).verify() == []


@pytest.mark.parametrize("error", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch, error):
    """A finished store is read all the same; an unfinished one keeps what it has."""
    write_store(tmp_path / "finished")
    write_part(tmp_path / "begun", Part(1, 2))
    before, real = content(tmp_path / "begun"), os.open

    def refuse(path, flags, *rest, **more):
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            raise OSError(error, os.strerror(error))
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StoreError, match=rf"begun cannot be written: {os.strerror(error)}"):
        write_part(tmp_path / "begun", Part(2, 2))
    write_store(tmp_path / "finished")
    assert content(tmp_path / "begun") == before
    with pytest.raises(PruneBoardError, match="nowhere cannot be written"):
        write_part(tmp_path / "nowhere", Part())


def test_finishing_removes_what_only_the_writing_needed(tmp_path):
    """Also after a process that was killed between the manifest and its tidying up."""
    write_store(tmp_path)
    good = content(tmp_path)
    for name in ("pages-00001.json", "queries.json", ".part-1-of-8.lock", ".store.lock", ".manifest.json.a-1.tmp"):
        (tmp_path / name).write_text("left behind")
    (tmp_path / "mine.json").write_text("a note of the user's")
    assert len(read_manifest(tmp_path).shards) == 3
    write_store(tmp_path)
    assert content(tmp_path) == {**good, "mine.json": b"a note of the user's"}


def test_the_command_encodes_parts_and_finishes(tmp_path, monkeypatch):
    """The same bytes as the command alone; a part that is not the last says what is there."""
    backbone, pages = write_backbone(tmp_path), write_data_set(tmp_path / "pages", range(70), queries=3)
    monkeypatch.chdir(tmp_path)

    def run(root: str, *more: str) -> Result:
        options = ["--backbone", str(backbone), "--benchmark", str(pages), "--store", root]
        return CliRunner().invoke(app, ["encode", *options, *more], catch_exceptions=False)

    assert json.loads(run("alone", "--json").stdout)[0]["pages"] == 70
    said = run("parts", "--part", "3/3", "--batch-size", "8").output.replace("\n", "")
    assert "6 of 70 pages are there; other parts are missing" in said
    with pytest.raises(StoreError, match=r"was begun with 8 pages a batch.*leave --batch-size away"):
        run("parts", "--part", "2/3", "--batch-size", "4")
    with pytest.raises(StoreError, match="is no part; write 3/8"):
        run("parts", "--part", "third")
    with pytest.raises(StoreError, match="leave --part away"):
        run("parts", "--part", "3/3", "--repair")
    run("parts", "--part", "1/3")
    assert json.loads(run("parts", "--json").stdout)[0]["pages"] == 70
    (alone,), (parts,) = (list((tmp_path / root).iterdir()) for root in ("alone", "parts"))
    assert content(parts) == content(alone)


@pytest.mark.slow
def test_a_million_page_manifest_opens_in_two_seconds(tmp_path):
    """Of CPU time: other work on the machine is not counted."""
    assert open_large(tmp_path, 1_000_000)["open"] < 2


@pytest.mark.slow
def test_twice_the_pages_take_twice_the_time(tmp_path):
    small, large = measure(tmp_path, (16_000, 32_000), quiet)
    assert large["cpu"] < 2.4 * small["cpu"]  # 2.2 and what other work on the machine does to caches; it was 3.8
