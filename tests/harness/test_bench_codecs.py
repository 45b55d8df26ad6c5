"""`harness bench codecs` in a small form: what it compares before a time is printed, and that it finds mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.bench import codecs as bench
from harness.bench.plain_codecs import READERS
from harness.progress import quiet
from pruners import PruneBoardError
from pruners.codecs.codebooks import pq
from pruners.codecs.signs import binary
from pruners.codecs.whole_numbers import int8
from pruners.core.codec_catalog import codec_catalogue

pytest.importorskip("faiss", reason="pip install 'pruneboard[test]' brings faiss-cpu")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "ROUNDS", 1)


def off_by(scale: float, decode: Any) -> Any:
    return lambda self, rows, dim: decode(self, rows, dim) * np.float32(scale)


def test_plain_numpy_reads_every_codec() -> None:
    assert set(READERS) == set(codec_catalogue())


def test_every_codec_is_compared_and_timed() -> None:
    rows = {row["codec"]: row for row in bench.measure_pages(64, 128, quiet)}
    assert list(rows) == bench.CODECS.split(",")
    assert all(row["numpy_decode_ms"] > row["decode_ms"] for row in rows.values())
    assert rows["int4"]["bytes"] == 66


def test_a_wrong_scale_is_found_before_a_time_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "CODECS", "int8")
    monkeypatch.setattr(int8, "decode", off_by(1.001, int8.decode))
    with pytest.raises(PruneBoardError, match="int8 decodes otherwise than plain numpy does"):
        bench.measure_pages(64, 128, quiet)


def test_a_swapped_bit_order_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "CODECS", "int4")
    pack, unpack, little = np.packbits, np.unpackbits, {"bitorder": "little"}
    monkeypatch.setattr(np, "packbits", lambda *a, **k: pack(*a, **(k | little)))
    monkeypatch.setattr(np, "unpackbits", lambda *a, **k: unpack(*a, **(k | little)))
    with pytest.raises(PruneBoardError, match="int4 decodes otherwise"):
        bench.measure_pages(64, 128, quiet)


@pytest.mark.parametrize(("codec", "says"), [(binary, "other sign bits"), (pq, "other product codes")])
def test_other_codes_than_faisss_are_found(codec: Any, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "CODECS", codec.declaration.name)
    encode = codec.encode
    monkeypatch.setattr(codec, "encode", lambda self, vectors: encode(self, -vectors))
    with pytest.raises(PruneBoardError, match=f"faiss finds {says}"):
        bench.measure_pages(64, 128, quiet)


@pytest.mark.slow
def test_a_sweep_scores_as_cell_by_cell_and_decodes_as_plain_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    page = bench._page
    monkeypatch.setattr(bench, "_page", lambda n, dim, seed: page(96, dim, seed))
    rows = bench.measure_sweep(1, 3, 4, quiet)
    assert rows[0]["ratio"] == 1
    assert rows[0]["cells"] % 12 == 0
    monkeypatch.setattr(int8, "decode", off_by(1.001, int8.decode))
    with pytest.raises(PruneBoardError, match="int8 decodes otherwise"):
        bench.measure_sweep(1, 3, 4, quiet)
