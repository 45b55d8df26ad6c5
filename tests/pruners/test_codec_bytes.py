"""Codecs: what they write is as large as they say, reads back by hand, and loses no more than it must."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from threadpoolctl import threadpool_info, threadpool_limits

from pruners import Codec, PruneBoardError
from pruners.codecs import codebooks
from pruners.codecs.bits import pack_bits, unpack_bits
from pruners.codecs.rotated import normal_levels, rotation
from pruners.core.codec_catalog import codec_catalogue, read_codecs
from tests.pruners.plain_codecs import DECODERS

DIM = 24
TEXTS = (
    *("float16", "int8", "int4", "binary", "binary_both", "pq(4)", "residual(bits=1, codes=16)"),
    *("residual(bits=2, codes=16)", "residual(bits=4, codes=16)", "turboquant(1)", "turboquant", "turboquant(4)"),
    *("dims(10)", "pca(6)"),
)


def vectors(count: int, dim: int = DIM, seed: int = 0) -> np.ndarray:
    """Unit vectors around a few centres, as a page's are."""
    rng = np.random.default_rng(seed)
    made = rng.standard_normal((12, dim))[rng.integers(0, 12, count)] + 0.5 * rng.standard_normal((count, dim))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def ready(text: str, dim: int = DIM) -> Codec:
    (codec,) = read_codecs(text)
    return codec.calibrate(vectors(600, dim, seed=1))


@pytest.fixture(scope="module", params=TEXTS)
def codec(request: pytest.FixtureRequest) -> Codec:
    return ready(request.param)


def check_by_hand(codec: Codec, page: np.ndarray, folder: Path) -> None:
    """What is on disk has the size that counts, and read by hand gives the vectors that are scored."""
    dim = page.shape[1]
    file, shared_file = folder / "page", folder / "shared"
    file.write_bytes(codec.pack(page))
    shared = codec.shared(dim)
    shared_file.write_bytes(b"".join(array.tobytes() for array in shared.values()))
    assert file.stat().st_size == len(page) * codec.row(dim).itemsize
    assert shared_file.stat().st_size == codec.shared_bytes(dim)
    size, data = codec.row(dim).itemsize, file.read_bytes()
    by_hand = [DECODERS[codec.name](data[i * size : (i + 1) * size], dim, shared) for i in range(len(page))]
    np.testing.assert_allclose(codec.unpack(data, dim), by_hand, atol=1e-6)


def test_every_codec_is_read_by_hand_here() -> None:
    assert {text.partition("(")[0] for text in TEXTS} == set(DECODERS) == set(codec_catalogue())


def test_what_is_packed_is_as_large_as_counted_and_reads_back(codec: Codec, tmp_path: Path) -> None:
    check_by_hand(codec, vectors(40), tmp_path)


@pytest.mark.parametrize("text", ["int8", "int4", "binary", "turboquant(3)", "residual(bits=1, codes=16)"])
def test_widths_that_fill_no_byte_read_back_too(text: str, tmp_path: Path) -> None:
    check_by_hand(ready(text, 13), vectors(9, 13), tmp_path)


def test_a_wrong_scale_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codec = ready("int8")
    monkeypatch.setattr(
        type(codec), "decode", lambda self, rows, dim: rows["numbers"] * rows["scale"][:, None] * np.float32(1.001)
    )
    with pytest.raises(AssertionError):
        check_by_hand(codec, vectors(40), tmp_path)


@pytest.mark.parametrize("text", ["binary", "int4", "residual(bits=2, codes=16)"])
def test_a_swapped_bit_order_is_caught(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codec, packbits, unpackbits = ready(text), np.packbits, np.unpackbits
    little, before = {"bitorder": "little"}, codec.unpack(codec.pack(vectors(40)), DIM)
    monkeypatch.setattr(np, "packbits", lambda *a, **k: packbits(*a, **(k | little)))
    monkeypatch.setattr(np, "unpackbits", lambda *a, **k: unpackbits(*a, **(k | little)))
    assert np.array_equal(codec.unpack(codec.pack(vectors(40)), DIM), before)  # it reads its own mistake
    with pytest.raises(AssertionError):
        check_by_hand(codec, vectors(40), tmp_path)


@pytest.mark.parametrize("text", ["pq(4)", "residual(bits=2, codes=16)", "turboquant", "pca(6)"])
def test_a_shared_part_left_out_of_the_bytes_is_caught(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codec = ready(text)
    monkeypatch.setattr(type(codec), "shared_bytes", lambda self, dim: 0)
    with pytest.raises(AssertionError):
        check_by_hand(codec, vectors(40), tmp_path)


@given(bits=st.integers(1, 4), codes=hnp.arrays(np.uint8, st.tuples(st.integers(1, 5), st.integers(1, 20))))
def test_codes_come_back_from_their_bits(bits: int, codes: np.ndarray) -> None:
    codes &= (1 << bits) - 1
    assert np.array_equal(unpack_bits(pack_bits(codes, bits), codes.shape[1], bits), codes)


@settings(max_examples=40)
@given(
    page=hnp.arrays(np.float32, (3, DIM), elements=st.floats(-2, 2, width=32)),
    top=st.sampled_from([("int8", 127), ("int4", 7)]),
)
def test_whole_numbers_are_off_by_half_a_step_at_most(page: np.ndarray, top: tuple[str, int]) -> None:
    """A step is the largest number / top, and its float16 scale may be 0.05 % off; scales below 1e-6 are denormal."""
    codec, step = ready(top[0]), np.abs(page).max(1, keepdims=True) / top[1]
    apart = np.abs(codec.unpack(codec.pack(page), DIM) - page)
    assert (apart <= step / 2 + top[1] * step * 6e-4 + 1e-5).all()


def test_more_bits_lose_less() -> None:
    page = vectors(200, seed=2)

    def lost(text: str) -> float:
        codec = ready(text)
        products = codec.query(page) @ codec.unpack(codec.pack(page), DIM).T
        return float(np.square(products - page @ page.T).mean())

    for family in (
        ("binary_both", "binary", "int4", "int8", "float16"),
        tuple(f"turboquant({bits})" for bits in (1, 2, 3, 4)),
        tuple(f"residual(bits={bits}, codes=16)" for bits in (1, 2, 4)),
        ("pq(2)", "pq(4)", "pq(12)"),
        ("dims(6)", "dims(12)", "dims(24)"),
        ("pca(6)", "pca(12)", "pca(24)"),
    ):
        losses = [lost(text) for text in family]
        assert losses == sorted(losses, reverse=True), family


def test_vectors_of_zeros_stay_finite() -> None:
    for text in TEXTS:
        codec = ready(text)
        assert np.isfinite(codec.unpack(codec.pack(np.zeros((2, DIM), np.float32)), DIM)).all(), text


def test_signs_have_no_length() -> None:
    page = np.stack([vectors(1)[0], 0.3 * vectors(1)[0], np.zeros(DIM, np.float32)])
    unit, short, nothing = ready("binary").unpack(ready("binary").pack(page), DIM)
    np.testing.assert_array_equal(unit, short)
    np.testing.assert_allclose(nothing, np.full(DIM, DIM**-0.5), rtol=1e-6)


@pytest.mark.parametrize("text", ["float16", "int8", "int4", "turboquant", "dims(10)", "pca(6)"])
def test_vectors_too_long_for_a_float16_are_refused(text: str) -> None:
    """Not stored as infinite, which would score every query as -inf, inf or nan; just below, all is well."""
    codec, page = ready(text), vectors(3)
    fits = {"float16": 60_000, "int8": 127 * 60_000, "int4": 7 * 60_000}.get(text, 30_000)
    assert np.isfinite(codec.unpack(codec.pack(page * fits / np.abs(page).max()), DIM)).all()
    for factor in (1e9, np.inf, np.nan):
        with pytest.raises(PruneBoardError, match=rf"^{re.escape(text)} stores the \w+ of a vector as float16"):
            codec.pack(page * np.float32(factor))


def test_turboquants_levels_are_the_papers() -> None:
    """arXiv 2504.19874, Section 3.1: ±√(2/π) for one bit; ±0.453 and ±1.51 for two, in units of 1/√d."""
    assert normal_levels(1) == pytest.approx([-math.sqrt(2 / math.pi), math.sqrt(2 / math.pi)], abs=1e-3)
    assert normal_levels(2) == pytest.approx([-1.51, -0.453, 0.453, 1.51], abs=2e-3)
    turned = rotation(64)
    np.testing.assert_allclose(turned @ turned.T, np.eye(64), atol=1e-3)


def test_pcas_directions_are_those_of_a_truncated_svd() -> None:
    from sklearn.decomposition import TruncatedSVD

    learned = vectors(600, seed=1)
    theirs = TruncatedSVD(6, algorithm="arpack", random_state=0).fit(learned).components_
    ours = ready("pca(6)").shared(DIM)["directions"].astype(float)
    np.testing.assert_allclose(np.abs(ours @ theirs.T), np.eye(6), atol=2e-3)


@pytest.mark.parametrize(
    ("text", "place", "work"),
    [("pca(6)", np.linalg, "eigh"), *((text, codebooks, "learn_codebook") for text in ("pq(4)", "residual"))],
)
def test_what_is_learned_is_learned_by_one_thread(
    text: str, place: Any, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A product shared among threads may differ in its last bits: what a codec learns must not."""
    usual, threads = getattr(place, work), []

    def watched(*arguments: Any) -> Any:
        threads.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return usual(*arguments)

    monkeypatch.setattr(place, work, watched)
    with threadpool_limits(2):
        ready(text)
    assert set(threads) == {1}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("pq(5)", "cannot cut vectors of 24 numbers into 5"),
        ("dims(25)", "cannot keep 25 of the 24"),
        ("pca(0)", "cannot keep 0 of the 24"),
    ],
)
def test_a_codec_that_does_not_fit_says_why(text: str, says: str) -> None:
    (codec,) = read_codecs(text)
    with pytest.raises(PruneBoardError, match=says):
        codec.row(DIM)


def test_what_was_not_learned_cannot_be_used() -> None:
    for text in ("pq(4)", "residual", "pca(6)"):
        (codec,) = read_codecs(text)
        with pytest.raises(PruneBoardError, match="has no codebook yet"):
            codec.pack(vectors(2))
    with pytest.raises(PruneBoardError, match="learns 256 codes, but calibration pages have 100 vectors"):
        read_codecs("pq(4)")[0].calibrate(vectors(100))


def test_bytes_that_are_no_vectors_are_refused() -> None:
    with pytest.raises(PruneBoardError, match=r"7 bytes are no vectors of int8, which takes 26 for each"):
        ready("int8").unpack(b"1234567", DIM)
