"""Groups of patches: what they merge into, and what is refused."""

import numpy as np
import pytest
import torch

from pruners import Merged, Page, PruneBoardError, PrunerError, parse, prune, reducer, synthetic_page, unit
from pruners.core.apply import checked
from pruners.core.groups import Groups, group


@pytest.fixture
def page() -> Page:
    return synthetic_page(3, 4, dim=8)


LABELS = np.array([0, 1, 1, -1, 2, 0, 2, 2, -1, 1, 0, 2])


@pytest.mark.parametrize("renormalize", [False, True])
def test_a_group_merges_into_the_mean_of_its_patches(page: Page, renormalize: bool) -> None:
    merged = group(page.vectors, LABELS, 3, renormalize).vectors
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


def test_a_reducer_may_return_the_group_of_each_patch(page: Page) -> None:
    @reducer("halves")
    def halves(page: Page, k: int, renormalize: bool = True) -> torch.Tensor:
        return torch.arange(len(page)) * k // len(page)

    result = prune(halves(), page, [0.25, 1.0])
    assert isinstance(result, Merged)
    torch.testing.assert_close(result.vectors[0], unit(page.vectors.view(3, 4, 8).mean(1)))
    assert isinstance(result.parts[0], Groups)
    assert isinstance(result.parts[1], torch.Tensor), "nothing is merged at a budget of 1"


def test_groups_made_by_hand_are_checked_before_compiled_loops_follow_them(page: Page) -> None:
    honest = group(page.vectors, LABELS, 3, renormalize=True)

    def returns(patches: torch.Tensor = page.vectors, labels: np.ndarray = LABELS, scales: np.ndarray = honest.scales):
        checked(parse("kmeans"), page, [0.25], Merged((Groups(patches, labels, scales),)))

    returns()
    with pytest.raises(PrunerError, match=r"vector 0 has norm 1\.01; expected 1"):
        returns(scales=honest.scales * np.array([1.01, 1, 1], np.float32))
    with pytest.raises(PrunerError, match="1 of 3 vectors are not finite, the first is 1"):
        returns(scales=honest.scales * np.array([1, np.nan, 1], np.float32))
    with pytest.raises(PrunerError, match="group 2 of 3 has no patch"):
        returns(labels=np.where(LABELS == 2, -1, LABELS))
    with pytest.raises(PrunerError, match="do not label 12 patches with 0 to 2 or -1"):
        returns(labels=LABELS[:-1])
    with pytest.raises(PrunerError, match="do not label 12 patches"):
        returns(labels=LABELS + 1)
    with pytest.raises(PrunerError, match="do not label 12 patches"):
        returns(labels=LABELS.astype(np.int32))
    with pytest.raises(PrunerError, match="not of this page's vectors"):
        returns(patches=page.vectors.clone())
