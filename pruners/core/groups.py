"""Groups of patches, each merged into its mean: what pooling and clustering come down to.

A mean's similarity to a query token is the mean of its patches' similarities. A method that says which patches it
merged is therefore scored from the similarities of the page itself, which all methods share (`harness/scoring`); one
that only returns vectors needs a matrix product of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from pruners.kernels import groups as kernels
from pruners.kernels.rows import add_rows, squares

from .errors import PruneBoardError


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
        return torch.from_numpy(kernels.merged(self.patches.numpy(), self.labels, self.scales))

    def norms(self) -> np.ndarray:
        """Of the merged vectors."""
        return np.sqrt(squares(kernels.merged(self.patches.numpy(), self.labels, self.scales)))

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
    outside, empty = kernels.faults(labels, k)
    if outside >= 0:
        raise PruneBoardError(f"a patch has label {labels[outside]}; expected 0 to {k - 1}, or -1: in no group")
    if empty >= 0:
        raise PruneBoardError(f"group {empty} of {k} has no patch")
    return Groups(patches, labels, kernels.scales(patches.numpy(), labels, k, renormalize))


def weighted_means(
    patches: torch.Tensor, labels: np.ndarray, weights: np.ndarray, k: int, renormalize: bool
) -> torch.Tensor:
    """The mean `[k, d]` of each group, in which patches count by their weights; of a group without any, the plain mean.

    Labels are those of `group`. These are vectors and not `Groups`, whose patches all count the same.
    """
    plain = group(patches, labels, k, renormalize=False)
    weights = np.asarray(weights, np.float64)
    inside = plain.labels >= 0
    total = np.bincount(plain.labels[inside], weights[inside], k)
    own = np.where(inside & (total[plain.labels] == 0), 1.0, weights)
    total = np.bincount(plain.labels[inside], own[inside], k)
    sums = np.zeros((k, patches.shape[1]))
    add_rows(sums, plain.labels, own[:, None] * patches.numpy())
    made = torch.from_numpy((sums / total[:, None]).astype(np.float32))
    return torch.nn.functional.normalize(made, dim=-1) if renormalize else made
