"""docmerger: keep, merge or drop by three levels of attention, as jianxyou/project_6765 does."""

import numpy as np
import pytest
import torch
from sklearn.cluster import AgglomerativeClustering

from pruners import Page, PrunerError, parse, prune, synthetic_page
from pruners.core.errors import PruneBoardError
from pruners.docmerger import deviations
from tests.pruners.test_merging_methods import directions, same_set

BUDGETS = [0.05, 0.1, 0.2]


def published(page: Page, k1: float = 0.5, k2: float = 0.25, merge_ratio: float = 0.25) -> torch.Tensor:
    """`_docmerger_core` of the published code (commit 547dead), in float64 and without its text tokens."""
    x, a = page.vectors.double(), page.signals["eos"][-1].double()
    upper, lower = a.quantile(0.75), a.quantile(0.25)
    clipped = a.clamp(max=float(upper + 3 * (upper - lower)))
    mu, sigma = clipped.mean(), clipped.std()
    keep, drop = a > mu + k1 * sigma, a <= mu - k2 * sigma
    merge = ~keep & ~drop
    if not keep.any() and not merge.any():
        return page.vectors[a.argmax()][None]
    parts = [x[keep]]
    if merge.any():
        clusters = max(1, int(int(merge.sum()) * merge_ratio))
        if clusters >= merge.sum():
            parts.append(x[merge])
        else:
            model = AgglomerativeClustering(clusters, metric="cosine", linkage="average")
            labels = torch.from_numpy(model.fit_predict(x[merge].numpy()))
            for cluster in range(clusters):
                w = a[merge][labels == cluster][:, None]
                parts.append((x[merge][labels == cluster] * w / w.sum()).sum(0, keepdim=True))
    return torch.cat(parts).float()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("given", [{}, {"k1": 1.0, "k2": 0.0, "merge_ratio": 0.5}, {"k1": 9.0, "k2": -8.0}])
def test_it_equals_the_published_code(given: dict[str, float], seed: int) -> None:
    page = synthetic_page(8 + seed, 9, seed=seed)
    ours = {"k1": "upper", "k2": "lower", "merge_ratio": "ratio"}
    text = ", ".join(["shift=0.0", *(f"{ours[name]}={value}" for name, value in given.items())])
    assert same_set(prune(parse(f"docmerger({text})"), page, [0.1]).vectors[0], published(page, **given))


def test_the_three_levels_by_hand() -> None:
    # mean 3, sample deviation 2.16: above 4.08 kept, up to 2.46 dropped, 3 and 4 merged 3 : 4
    eos = torch.tensor([[1.0, 2, 3, 4, 7, 2, 2]])
    angles = [0.0, 30, 90, 96, 180, 200, 220]
    z = deviations(eos[0].double().numpy())
    assert z[[4, 3, 2, 1]].tolist() == pytest.approx([(a - 3) / 2 for a in (7, 4, 3, 2)], abs=1e-12)
    (made,) = prune(parse("docmerger(shift=0)"), Page("seven", directions(angles), None, {"eos": eos}), [0.1]).vectors
    kept, third, fourth = directions([180.0, 90, 96])
    assert same_set(made, torch.stack([kept, (3 * third + 4 * fourth) / 7]))


def test_equal_attention_keeps_one_patch_and_no_page_is_lost() -> None:
    page = Page("flat", directions([0.0, 90, 180]), None, {"eos": torch.full((1, 3), 0.2)})
    assert torch.equal(prune(parse("docmerger(shift=0)"), page, [0.1]).vectors[0], page.vectors[:1])
    page = Page("one", directions([0.0]), None, {"eos": torch.ones(1, 1)})
    assert len(prune(parse("docmerger(shift=0)"), page, [0.1]).vectors[0]) == 1


def test_matched_it_meets_the_budget_over_calibration_pages() -> None:
    pages = [synthetic_page(10, 20 + i, seed=i) for i in range(12)]
    method = parse("docmerger").calibrate(pages, BUDGETS)
    for budget in BUDGETS:
        kept = sum(len(prune(method, page, [budget]).vectors[0]) for page in pages)
        assert kept / sum(map(len, pages)) == pytest.approx(budget, abs=0.005)
    assert list(method.learned_thresholds) == BUDGETS
    assert sorted(method.shifts.values(), reverse=True) == list(method.shifts.values()), "a higher one keeps less"
    whole = parse("docmerger").calibrate(pages, [1.0])
    assert same_set(prune(whole, pages[0], [1.0]).vectors[0], pages[0].vectors)


def test_its_own_thresholds_have_a_partner_and_mistakes_are_named() -> None:
    native = parse("docmerger(shift=0)")
    assert native.own_threshold
    assert not native.needs_calibration
    assert str(native.partner) == "eos"
    with pytest.raises(PruneBoardError, match="ratio is a part of the merged patches"):
        parse("docmerger(ratio=2.0)")
    with pytest.raises(PruneBoardError, match=r"upper \(-1.0\) lies above"):
        parse("docmerger(upper=-1.0)")
    page = synthetic_page(3, 3)
    with pytest.raises(PrunerError, match=r"not calibrated for budget 0\.1; call calibrate"):
        prune(parse("docmerger"), page, [0.1])


def test_statistics_withstand_an_attention_sink() -> None:
    a = np.array([1.0, 2, 3, 4, 1000])
    clipped = np.array([1.0, 2, 3, 4, 10])  # quartiles 2 and 4: clipped at 4 + 3·2
    np.testing.assert_allclose(deviations(a), (a - clipped.mean()) / clipped.std(ddof=1))
