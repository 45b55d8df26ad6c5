"""A large corpus is hashed once; again when one of its files changed, and when what was kept is damaged."""

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harness.benchmarks import data_set, hash_cache
from harness.benchmarks.data_set import read_folder
from tests.harness.evaluation.toy import paint, write_data_set

LONG_AGO = 1_600_000_000 * 10**9


@pytest.fixture
def pages(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(hash_cache, "LARGE", 1)
    folder = write_data_set(tmp_path / "pages", range(20), queries=3)
    path = corpus(folder)
    pq.write_table(pq.read_table(path), path, compression="none", use_dictionary=False)
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    return folder


@pytest.fixture
def hashed(monkeypatch) -> list[bytes]:
    """Every image that is hashed."""
    seen: list[bytes] = []
    real = data_set.file_hash
    monkeypatch.setattr(data_set, "file_hash", lambda encoded: seen.append(encoded) or real(encoded))
    return seen


def corpus(folder: Path) -> Path:
    (path,) = (folder / "corpus").iterdir()
    return path


def test_a_corpus_is_hashed_once(pages: Path, hashed: list[bytes]) -> None:
    first = read_folder(pages)
    assert len(hashed) == 20
    again = read_folder(pages)
    assert len(hashed) == 20
    assert (again.content, again.file_hashes, again.page_ids) == (first.content, first.file_hashes, first.page_ids)
    assert again.image(7).tobytes() == first.image(7).tobytes()


def test_a_file_that_changed_is_hashed_again_also_if_it_is_as_long_as_before(pages: Path, hashed: list[bytes]) -> None:
    before, path = read_folder(pages), corpus(pages)
    data = path.read_bytes()
    at = data.index(paint(5))
    path.write_bytes(data[: at + 50] + bytes([data[at + 50] ^ 1]) + data[at + 51 :])
    changed = read_folder(pages)
    assert len(hashed) == 40
    assert changed.content["corpus"] != before.content["corpus"]


def test_a_file_that_was_written_just_now_is_not_kept(pages: Path, hashed: list[bytes]) -> None:
    """It might be written again, as long as before, before the clock's next tick."""
    os.utime(corpus(pages))
    read_folder(pages)
    read_folder(pages)
    assert len(hashed) == 40


@pytest.mark.parametrize("damage", [lambda text: text[:-1], lambda text: text[:-1] + "g", lambda text: ""])
def test_what_is_damaged_in_the_cache_is_made_again(pages: Path, hashed: list[bytes], tmp_path: Path, damage) -> None:
    before = read_folder(pages)
    (kept,) = (tmp_path / "cache" / "pruneboard" / "hashes").iterdir()
    kept.write_text(damage(kept.read_text()))
    assert read_folder(pages).content == before.content
    assert len(hashed) == 40


def test_a_cache_that_cannot_be_written_is_none(pages: Path, hashed: list[bytes], tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    assert read_folder(pages).content == read_folder(pages).content
    assert len(hashed) == 40


def test_a_small_corpus_is_always_read(pages: Path, hashed: list[bytes], monkeypatch) -> None:
    monkeypatch.setattr(hash_cache, "LARGE", 10**9)
    read_folder(pages)
    read_folder(pages)
    assert len(hashed) == 40
