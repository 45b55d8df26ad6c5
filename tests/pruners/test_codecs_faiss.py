"""Codecs beside faiss, on the same vectors and the same codebooks."""

import numpy as np
import pytest

from tests.pruners.test_codec_bytes import ready, vectors

faiss = pytest.importorskip("faiss", reason="pip install 'pruneboard[test]' brings faiss-cpu")


def test_product_codes_are_those_of_faiss_with_our_codebooks() -> None:
    codec, page = ready("pq(4)"), vectors(300, seed=3)
    theirs = faiss.ProductQuantizer(page.shape[1], 4, 8)
    faiss.copy_array_to_vector(codec.shared(24)["codebooks"].astype(np.float32).ravel(), theirs.centroids)
    codes = theirs.compute_codes(page)
    assert codes.tobytes() == codec.pack(page)
    np.testing.assert_allclose(codec.unpack(codes.tobytes(), 24), theirs.decode(codes), atol=1e-6)


def test_product_codebooks_are_as_good_as_those_that_faiss_learns() -> None:
    learned, page = vectors(4000, seed=1), vectors(400, seed=3)
    codec = ready("pq(4)").calibrate(learned)
    theirs = faiss.ProductQuantizer(24, 4, 8)
    theirs.train(learned)
    ours, other = codec.unpack(codec.pack(page), 24), theirs.decode(theirs.compute_codes(page))
    assert np.square(ours - page).sum() < 1.05 * np.square(other - page).sum()


def test_residuals_are_to_the_centre_that_faiss_finds_nearest() -> None:
    codec, page = ready("residual(bits=2, codes=16)"), vectors(300, seed=3)
    index = faiss.IndexFlatL2(24)
    index.add(codec.shared(24)["centres"].astype(np.float32))
    assert np.array_equal(codec.encode(page)["centre"], index.search(page, 1)[1][:, 0])


def test_both_sides_binary_rank_as_faisss_hamming_distance() -> None:
    codec, page, query = ready("binary_both"), vectors(300, seed=3), vectors(5, seed=4)
    index = faiss.IndexBinaryFlat(24)
    index.add(np.frombuffer(codec.pack(page), np.uint8).reshape(300, 3))
    distance, order = index.search(np.packbits(query >= 0, axis=1), 300)
    scores = codec.query(query) @ codec.unpack(codec.pack(page), 24).T
    np.testing.assert_allclose(np.take_along_axis(scores, order, 1), 1 - 2 * distance / 24, atol=1e-6)


@pytest.mark.parametrize(("text", "kind"), [("int8", "QT_8bit"), ("int4", "QT_4bit")])
def test_a_scale_a_vector_is_not_much_worse_than_faisss_range_a_dimension(text: str, kind: str) -> None:
    """faiss learns from data where each dimension begins and ends; we store a scale with each vector."""
    codec, page = ready(text), vectors(400, seed=3)
    theirs = faiss.ScalarQuantizer(24, getattr(faiss.ScalarQuantizer, kind))
    theirs.train(vectors(4000, seed=1))
    ours, other = codec.unpack(codec.pack(page), 24), theirs.decode(theirs.compute_codes(page))
    assert np.square(ours - page).sum() < 1.5 * np.square(other - page).sum()
