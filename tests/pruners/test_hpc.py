"""hpc's codebook: as close to its vectors as scikit-learn's, and exact where it can be."""

import numpy as np
import torch
from sklearn.cluster import KMeans

from pruners.core.codebook import SAMPLE, learn_codebook


def test_a_codebook_is_as_close_as_scikit_learns() -> None:
    """Vectors around 300 points, 64 codes, more vectors than the sample that K-Means starts on."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(300, 16))
    vectors = (points[rng.integers(300, size=6000)] + 0.3 * rng.normal(size=(6000, 16))).astype(np.float32)
    assert len(vectors) > SAMPLE * 64

    def error(centres: np.ndarray) -> float:
        return float(torch.cdist(torch.from_numpy(vectors), torch.from_numpy(centres)).amin(1).square().sum())

    ours = error(learn_codebook(vectors, 64, np.random.default_rng(42)))
    peers = [KMeans(64, random_state=seed, n_init=1, max_iter=25).fit(vectors) for seed in range(5)]
    assert ours < 1.02 * np.mean([error(peer.cluster_centers_) for peer in peers])


def test_a_codebook_of_as_many_groups_as_codes_is_their_means() -> None:
    rng = np.random.default_rng(1)
    groups = 10 * np.eye(8)[:, None] + rng.uniform(-0.5, 0.5, size=(8, 20, 8))
    found = learn_codebook(groups.reshape(160, 8).astype(np.float32), 8, np.random.default_rng(42))
    np.testing.assert_allclose(found[found.argmax(1).argsort()], groups.mean(1), atol=1e-5)
