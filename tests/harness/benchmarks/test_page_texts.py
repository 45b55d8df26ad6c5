"""Texts of pages are read by row group when they are asked for, and are those of the column."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.benchmarks.data_set import _page_texts


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two files of 7 and 5 pages in row groups of 3; every fifth page has no text."""
    found, number = [], 0
    for count in (7, 5):
        texts = [None if i % 5 == 0 else f"page {i}" for i in range(number, number + count)]
        found.append(tmp_path / f"test-{number}.parquet")
        pq.write_table(pa.table({"id": [str(i) for i in range(count)], "text": texts}), found[-1], row_group_size=3)
        number += count
    return found


def test_texts_by_index_in_a_row_and_in_slices(files: list[Path]) -> None:
    expected = tuple("" if i % 5 == 0 else f"page {i}" for i in range(12))
    texts = _page_texts(files)
    assert texts is not None
    assert len(texts) == 12
    assert tuple(texts) == expected
    assert tuple(texts[i] for i in (11, 0, 6, 7, 3)) == tuple(expected[i] for i in (11, 0, 6, 7, 3))
    assert texts[2:9] == expected[2:9]
    with pytest.raises(IndexError, match="text 12 of 12 pages"):
        texts[12]


def test_a_file_without_texts_means_that_there_are_none(files: list[Path], tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["1"]}), tmp_path / "test-none.parquet")
    assert _page_texts([*files, tmp_path / "test-none.parquet"]) is None
