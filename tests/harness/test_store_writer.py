"""What the writer of a store wants and refuses: queries from the first part, once, and no page without vectors."""

from pathlib import Path

import pytest
import torch

from harness.backbones.contract import EncodedPage
from harness.store.format import StoreError
from harness.store.part import Part
from harness.store.reader import Store
from harness.store.writer import StoreWriter
from tests.harness.test_store import IDENTITY, some_page


@pytest.mark.parametrize(("part", "wanted"), [(Part(), True), (Part(1, 2), True), (Part(2, 2), False)])
def test_the_first_part_writes_the_queries(tmp_path: Path, part: Part, wanted: bool) -> None:
    with StoreWriter(tmp_path, IDENTITY, ["a", "b"], shard_pages=1, part=part) as writer:
        assert writer.wants_queries is wanted


def test_queries_that_are_there_are_not_wanted_again(tmp_path: Path) -> None:
    with StoreWriter(tmp_path, IDENTITY, ["a"], shard_pages=1) as writer:
        writer.add("a", some_page(0))
        writer.add_queries(["q"], [some_page(1).vectors])
        assert not writer.wants_queries
    with StoreWriter(tmp_path, IDENTITY, ["a"], shard_pages=1) as again:
        assert not again.wants_queries
    assert len(Store(tmp_path).query(0)) == len(some_page(1).vectors)


def test_a_page_without_vectors_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreError, match=r"page 'a': vectors must be \[N, d\] with N >= 1, not \[0, 8\]"),
        StoreWriter(tmp_path, IDENTITY, ["a"]) as writer,
    ):
        writer.add("a", EncodedPage(torch.ones(0, 8)))
