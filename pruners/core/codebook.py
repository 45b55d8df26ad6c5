"""K-Means codebooks: what codes stand for, learned from the vectors of calibration pages.

K-Means starts on a sample: greedy k-means++ and the first iterations need no more, and they would take most of the
time. The last iterations read every vector.
"""

from __future__ import annotations

import numpy as np

from pruners.kernels.rows import add_rows

SAMPLE = 48  # vectors a code
ON_SAMPLE, ON_ALL = 10, 8  # iterations; more of them lower the squared error by less than another seed does
BLOCK = 1024  # vectors assigned at a time: their products with all codes stay in the cache


def learn_codebook(vectors: np.ndarray, codes: int, rng: np.random.Generator) -> np.ndarray:
    """K-Means centres `[codes, d]` of `vectors [n, d]`."""
    sample = vectors[np.sort(rng.permutation(len(vectors))[: SAMPLE * codes])]
    centres = _seeded(sample, codes, rng)
    for seen in (*[sample] * ON_SAMPLE, *[vectors] * ON_ALL):
        centres = _means(seen, nearest(seen, centres), centres)
    return centres


def _seeded(vectors: np.ndarray, codes: int, rng: np.random.Generator) -> np.ndarray:
    """Greedy k-means++ (Arthur & Vassilvitskii 2007): of a few candidates drawn in proportion to the squared distance
    from the nearest centre, the one that lowers the sum of these distances most."""
    squares = np.einsum("nd,nd->n", vectors, vectors)
    import torch  # sizes are checked, and the site is built, without it

    columns = torch.from_numpy(vectors).T.contiguous()  # torch multiplies it by a few rows in a third of numpy's time
    chosen = [int(rng.integers(len(vectors)))]
    distances = np.maximum(squares - 2 * (vectors[chosen[0]] @ columns.numpy()) + squares[chosen[0]], 0)
    for _ in range(1, codes):
        cumulative = np.cumsum(distances, dtype=np.float64)
        draws = rng.random(2 + int(np.log(codes))) * cumulative[-1]
        candidates = np.minimum(np.searchsorted(cumulative, draws, side="right"), len(vectors) - 1)
        after = squares - 2 * (torch.from_numpy(vectors[candidates]) @ columns).numpy() + squares[candidates, None]
        np.clip(after, 0, distances, out=after)
        best = int(after.sum(1, dtype=np.float64).argmin())
        chosen.append(int(candidates[best]))
        distances = after[best]
    return vectors[chosen]


def nearest(vectors: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """The nearest centre of each vector: where v·c - |c|²/2 is largest."""
    half = np.einsum("kd,kd->k", centres, centres) / 2
    blocks = (vectors[start : start + BLOCK] for start in range(0, len(vectors), BLOCK))
    return np.concatenate([(block @ centres.T - half).argmax(1) for block in blocks])


def _means(vectors: np.ndarray, nearest: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """The mean of each centre's vectors; a centre without any stays where it is."""
    sums, counts = np.zeros(centres.shape), np.bincount(nearest, minlength=len(centres))[:, None]
    add_rows(sums, nearest, vectors)
    return np.divide(sums, counts, out=centres.astype(np.float64), where=counts > 0).astype(np.float32)
