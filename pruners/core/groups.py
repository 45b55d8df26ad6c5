"""Groups of patches, each merged into its mean: what pooling and clustering come down to.

A mean's similarity to a query token is the mean of its patches' similarities. A method that says which patches it
merged is therefore scored from the similarities of the page itself, which all methods share (`harness/scoring`); one
that only returns vectors needs a matrix product of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import torch

from .errors import PruneBoardError


@dataclass(frozen=True)
class Groups:
    """Merged vector j is `scales[j]` times the sum of the patches whose label is j. A label of -1: in no group."""

    labels: np.ndarray  # [N]
    scales: np.ndarray  # [k]: 1 / size for a mean, 1 / length of the sum for a mean of norm 1

    def vectors(self, page_vectors: torch.Tensor) -> torch.Tensor:
        """The merged vectors `[k, d]`."""
        sums, _ = _sums(page_vectors.numpy(), self.labels, len(self.scales))
        return torch.from_numpy(sums * self.scales[:, None])

    def with_singles(self, count: int) -> Groups:
        """These, and `count` further patches that stay as they are, each a group of its own."""
        singles = np.arange(len(self.scales), len(self.scales) + count)
        return Groups(np.append(self.labels, singles), np.append(self.scales, np.ones(count, np.float32)))

    def members(self) -> tuple[np.ndarray, np.ndarray]:
        """Patches by group, and where each group's begin; one more for where the last one's end."""
        return _members(self.labels, len(self.scales))


def group(page_vectors: torch.Tensor, labels: np.ndarray | torch.Tensor, k: int, renormalize: bool) -> Groups:
    """Groups from the label of each patch: 0 to k - 1, every one of them used, or -1."""
    labels = np.asarray(labels)
    if labels.dtype.kind not in "iu" or labels.shape != (len(page_vectors),):
        raise PruneBoardError(
            f"groups are given by one whole number a patch, an array [{len(page_vectors)}], "
            f"not by {labels.dtype} {list(labels.shape)}"
        )
    labels = labels.astype(np.int64, copy=False)
    if labels.min() < -1 or labels.max() >= k:
        worst = labels.min() if labels.min() < -1 else labels.max()
        raise PruneBoardError(f"a patch has label {worst}; expected 0 to {k - 1}, or -1 for a patch in no group")
    sums, sizes = _sums(page_vectors.numpy(), labels, k)
    if not sizes.all():
        raise PruneBoardError(f"group {int(sizes.argmin())} of {k} has no patch")
    if not renormalize:
        return Groups(labels, 1 / sizes)
    lengths = np.sqrt(np.einsum("kd,kd->k", sums, sums))
    return Groups(labels, 1 / np.maximum(lengths, np.float32(1e-12)))  # a zero sum stays zero: the check names it


@numba.njit(cache=True)
def _sums(vectors: np.ndarray, labels: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The sum `[k, d]` and the size `[k]` of each group."""
    sums = np.zeros((k, vectors.shape[1]), np.float32)
    sizes = np.zeros(k, np.float32)
    for i in range(len(labels)):
        j = labels[i]
        if j >= 0:
            sizes[j] += 1
            for d in range(vectors.shape[1]):
                sums[j, d] += vectors[i, d]
    return sums, sizes


@numba.njit(cache=True)
def _members(labels: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    ends = np.zeros(k + 1, np.int64)
    for label in labels:
        if label >= 0:
            ends[label + 1] += 1
    ends = np.cumsum(ends)
    place, members = ends[:-1].copy(), np.empty(ends[-1], np.int64)
    for i in range(len(labels)):
        if labels[i] >= 0:
            members[place[labels[i]]] = i
            place[labels[i]] += 1
    return members, ends
