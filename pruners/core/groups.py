"""Groups of patches, each merged into its mean: what pooling and clustering come down to.

A mean's similarity to a query token is the mean of its patches' similarities. A method that says which patches it
merged is therefore scored from the similarities of the page itself, which all methods share (`harness/scoring`); one
that only returns vectors needs a matrix product of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np
import torch

from .errors import PruneBoardError
from .rows import add_rows, square, squares


@dataclass(frozen=True)
class Groups:
    """Merged vector j is `scales[j]` times the sum of the patches whose label is j. A label of -1: in no group."""

    patches: torch.Tensor  # [N, d], the page's vectors
    labels: np.ndarray  # [N]
    scales: np.ndarray  # [k]: 1 / size for a mean, 1 / length of the sum for a mean of norm 1

    def __len__(self) -> int:
        return len(self.scales)

    @cached_property
    def vectors(self) -> torch.Tensor:
        """The merged vectors `[k, d]`; made when asked for, because scoring does without them."""
        return torch.from_numpy(_merged(self.patches.numpy(), self.labels, self.scales))

    def norms(self) -> np.ndarray:
        """Of the merged vectors."""
        return _norms(self.patches.numpy(), self.labels, self.scales)

    def with_singles(self, patches: torch.Tensor) -> Groups:
        """These, and what `patches` has beyond their own: each a group by itself."""
        count = len(patches) - len(self.patches)
        singles = np.arange(len(self), len(self) + count)
        return Groups(patches, np.append(self.labels, singles), np.append(self.scales, np.ones(count, np.float32)))


def group(patches: torch.Tensor, labels: np.ndarray | torch.Tensor, k: int, renormalize: bool) -> Groups:
    """Groups from the label of each patch: 0 to k - 1, every one of them used, or -1."""
    labels = np.asarray(labels)
    if labels.dtype.kind not in "iu" or labels.shape != (len(patches),):
        raise PruneBoardError(
            f"groups are given by one whole number a patch, an array [{len(patches)}], "
            f"not by {labels.dtype} {list(labels.shape)}"
        )
    labels = np.ascontiguousarray(labels, np.int64)
    outside, empty = faults(labels, k)
    if outside >= 0:
        raise PruneBoardError(f"a patch has label {labels[outside]}; expected 0 to {k - 1}, or -1: in no group")
    if empty >= 0:
        raise PruneBoardError(f"group {empty} of {k} has no patch")
    return Groups(patches, labels, _scales(patches.numpy(), labels, k, renormalize))


# Compiled, because every result of every merging method passes through these.


@numba.njit(cache=True)
def faults(labels: np.ndarray, k: int) -> tuple[int, int]:
    """The first patch whose label is neither -1 nor a group's, and the first group without a patch; -1: none."""
    for i in range(len(labels)):
        if labels[i] < -1 or labels[i] >= k:
            return i, -1
    sizes = _sizes(labels, k)
    for j in range(k):
        if sizes[j] == 0:
            return -1, j
    return -1, -1


@numba.njit(cache=True)
def _sizes(labels: np.ndarray, k: int) -> np.ndarray:
    sizes = np.zeros(k, np.float32)
    for label in labels:
        if label >= 0:
            sizes[label] += 1
    return sizes


@numba.njit(cache=True)
def _scales(vectors: np.ndarray, labels: np.ndarray, k: int, renormalize: bool) -> np.ndarray:
    """What each group's sum is multiplied by."""
    scales = _sizes(labels, k)
    if renormalize:
        sums = np.zeros((k, vectors.shape[1]), np.float32)
        add_rows(sums, labels, vectors)
        for j in range(k):  # a sum of zero has no direction and stays zero; the check on unit norm then names it
            scales[j] = max(np.sqrt(square(sums[j])), np.float32(1e-12))
    for j in range(k):
        scales[j] = 1 / scales[j]
    return scales


@numba.njit(cache=True)
def _merged(vectors: np.ndarray, labels: np.ndarray, scales: np.ndarray) -> np.ndarray:
    merged = np.zeros((len(scales), vectors.shape[1]), np.float32)
    add_rows(merged, labels, vectors)
    for j in range(len(scales)):
        for d in range(vectors.shape[1]):
            merged[j, d] *= scales[j]
    return merged


@numba.njit(cache=True)
def _norms(vectors: np.ndarray, labels: np.ndarray, scales: np.ndarray) -> np.ndarray:
    norms = squares(_merged(vectors, labels, scales))
    for j in range(len(norms)):
        norms[j] = np.sqrt(norms[j])
    return norms
