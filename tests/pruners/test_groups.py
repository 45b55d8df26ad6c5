"""Groups of patches: what they merge into, and what is refused."""

import itertools

import numpy as np
import pytest
import torch

from pruners import Merged, Page, PruneBoardError, PrunerError, parse, prune, reducer, synthetic_page, unit
from pruners.core.groups import Groups, group


@pytest.fixture
def page() -> Page:
    return synthetic_page(3, 4, dim=8)


LABELS = np.array([0, 1, 1, -1, 2, 0, 2, 2, -1, 1, 0, 2])


@pytest.mark.parametrize("renormalize", [False, True])
def test_a_group_merges_into_the_mean_of_its_patches(page: Page, renormalize: bool) -> None:
    merged = group(page.vectors, LABELS, 3, renormalize).vectors(page.vectors)
    means = torch.stack([page.vectors[j == LABELS].double().mean(0) for j in range(3)]).float()
    torch.testing.assert_close(merged, unit(means) if renormalize else means, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (LABELS * 1.0, r"one whole number a patch, an array \[12\], not by float64 \[12\]"),
        (LABELS[:5], r"not by int64 \[5\]"),
        (LABELS + 1, "label 3; expected 0 to 2"),
        (LABELS - 1, "label -2; expected 0 to 2, or -1"),
        (np.where(LABELS == 1, 0, LABELS), "group 1 of 3 has no patch"),
    ],
)
def test_labels_that_make_no_groups_are_named(page: Page, labels: np.ndarray, message: str) -> None:
    with pytest.raises(PruneBoardError, match=message):
        group(page.vectors, labels, 3, renormalize=True)


def test_members_are_listed_by_group() -> None:
    patches, begin = Groups(LABELS, np.ones(3, np.float32)).members()
    listed = [patches[a:b].tolist() for a, b in itertools.pairwise(begin)]
    assert listed == [[0, 5, 10], [1, 2, 9], [4, 6, 7, 11]]


def test_a_reducer_may_return_the_group_of_each_patch(page: Page) -> None:
    @reducer("halves")
    def halves(page: Page, k: int, renormalize: bool = True) -> torch.Tensor:
        return torch.arange(len(page)) * k // len(page)

    result = prune(halves(), page, [0.25, 1.0])
    assert isinstance(result, Merged)
    torch.testing.assert_close(result.vectors[0], unit(page.vectors.view(3, 4, 8).mean(1)))
    assert result.groups[0] is not None
    assert result.groups[1] is None, "nothing is merged at a budget of 1"


def test_groups_that_do_not_make_the_vectors_are_refused(page: Page) -> None:
    honest = prune(parse("kmeans"), page, [0.25])
    groups = honest.groups[0]

    def returns(labels: np.ndarray, scales: np.ndarray) -> None:
        from pruners.core.apply import checked

        checked(parse("kmeans"), page, [0.25], Merged(honest.vectors, groups=(Groups(labels, scales),)))

    returns(groups.labels, groups.scales)
    with pytest.raises(PrunerError, match="not the means of the groups"):
        returns(groups.labels[::-1].copy(), groups.scales)
    with pytest.raises(PrunerError, match="not the means of the groups"):
        returns(groups.labels, groups.scales * np.float32(1.001))
    with pytest.raises(PrunerError, match="do not label 12 patches"):
        returns(groups.labels[:-1], groups.scales)
    with pytest.raises(PrunerError, match="do not label 12 patches"):
        returns(groups.labels + 1, groups.scales)
