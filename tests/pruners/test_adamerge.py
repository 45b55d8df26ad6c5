"""adamerge: the cliff of a page's merge similarity says how many vectors it keeps."""

import numpy as np
import pytest
import torch
from scipy.cluster.hierarchy import cut_tree, linkage

from pruners import Page, PrunerError, parse, prune, synthetic_page
from pruners.adamerge import cliff
from pruners.core.errors import PruneBoardError
from tests.pruners.test_merging_methods import directions, same_set

BUDGETS = [0.05, 0.1, 0.2]


def lumps(counts: list[int], name: str = "lumps") -> Page:
    """Tight lumps of vectors, far apart: as many as `counts` has numbers."""
    rng = np.random.default_rng(len(counts))
    centres = np.repeat(np.eye(16)[: len(counts)], counts, 0)
    x = torch.from_numpy(centres + 0.01 * rng.standard_normal(centres.shape)).float()
    weights = torch.from_numpy(rng.random((1, len(x)))).float() + 0.1
    return Page(name, torch.nn.functional.normalize(x, dim=1), None, {"eos": weights})


def test_the_cliff_by_hand() -> None:
    # merge distances of six vectors; the chord runs from .1 to .9, and .15 lies .55 below it: three merges are cheap
    assert cliff(np.array([0.1, 0.1, 0.15, 0.8, 0.9])) == 3
    assert cliff(np.array([0.1, 0.5, 0.5, 0.5, 0.5])) == 5, "only the first merge is cheap"
    assert cliff(np.array([0.1, 0.1, 0.1, 0.1, 0.9])) == 2, "all but the last"
    assert cliff(np.zeros(5)) == 1, "equal vectors: every merge is free"
    assert [cliff(np.array(heights)) for heights in ([], [0.3], [0.1, 0.3])] == [1, 1, 1]


@pytest.mark.parametrize("counts", [[5, 5, 5], [3, 9, 4, 8], [2] * 11])
def test_a_page_of_lumps_keeps_one_vector_a_lump(counts: list[int]) -> None:
    page = lumps(counts)
    (made,) = prune(parse("adamerge(factor=1)"), page, [0.1]).vectors
    x, weights = page.vectors.double(), page.signals["eos"][0].double()[:, None]
    ends = np.cumsum(counts)
    sums = torch.stack([(weights * x)[end - n : end].sum(0) for n, end in zip(counts, ends, strict=True)])
    assert same_set(made, (sums / sums.norm(dim=1, keepdim=True)).float())


def test_it_equals_scipys_tree_cut_at_the_cliff_in_float64() -> None:
    page = synthetic_page(9, 11)
    x, weights = page.vectors.double().numpy(), page.signals["eos"][-1].double().numpy()
    tree = linkage(x, "average", metric="cosine")
    similarity = 1 - tree[:, 2]
    chord = [similarity[0] + (similarity[-1] - similarity[0]) * i / 97 for i in range(98)]
    k = 99 - (max(range(98), key=lambda i: similarity[i] - chord[i]) + 1)
    labels = cut_tree(tree, k).ravel()
    sums = np.stack([(weights[:, None] * x)[labels == label].sum(0) for label in range(k)])
    wanted = torch.from_numpy(sums / np.linalg.norm(sums, axis=1, keepdims=True)).float()
    assert same_set(prune(parse("adamerge(factor=1)"), page, [0.1]).vectors[0], wanted)


def test_matched_the_cliffs_say_which_pages_keep_more_and_the_budget_how_much() -> None:
    pages = [lumps([10] * lots, f"{lots} lumps") for lots in (2, 4, 8, 16)]
    method = parse("adamerge").calibrate(pages, BUDGETS)
    for budget in BUDGETS:
        kept = [len(prune(method, page, [budget]).vectors[0]) for page in pages]
        assert sum(kept) / sum(map(len, pages)) == pytest.approx(budget, abs=len(pages) / 300)
    kept = [len(prune(method, page, [0.2]).vectors[0]) for page in pages]
    assert kept == [4, 8, 16, 32], "a tenth are lumps; at a fifth every page keeps twice as many"
    assert method.learned_thresholds[0.2] == pytest.approx(2, abs=0.2)


def test_its_own_threshold_has_a_partner_of_a_fixed_ratio() -> None:
    native, matched = parse("adamerge(factor=1)"), parse("adamerge")
    assert (native.own_threshold, matched.own_threshold) == (True, False)
    assert (native.needs_calibration, matched.needs_calibration) == (False, True)
    assert str(native.partner) == "agglomerative(renormalize=true)"
    assert matched.partner is None


def test_mistakes_are_named() -> None:
    with pytest.raises(PruneBoardError, match=r"factor multiplies .* not 0"):
        parse("adamerge(factor=0)")
    page = Page("two", directions([0.0, 90]), None, {"eos": torch.ones(1, 2)})
    with pytest.raises(PrunerError, match=r"not calibrated for budget 0\.1; call calibrate"):
        prune(parse("adamerge"), page, [0.1])
    with pytest.raises(PruneBoardError, match="at least one calibration page"):
        parse("adamerge").calibrate([], BUDGETS)
