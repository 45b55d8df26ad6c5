"""Rule: adaptive methods share one threshold on page-wise z-scores, the quantile at 1 - γ of the calibration pages."""

import math

import numpy as np
import pytest
import torch

from pruners import Page, PrunerError, parse, prune, synthetic_page, unit
from pruners.adaptive import zscores

BUDGETS = [0.05, 0.1, 0.2]


def with_eos(values: list[float], name: str = "p") -> Page:
    return Page(name, unit(torch.randn(len(values), 4)), None, {"eos": torch.tensor([values])})


def test_the_threshold_is_the_global_quantile_of_pagewise_z_scores() -> None:
    pages = [synthetic_page(10, 10 + i, seed=i) for i in range(6)]
    calibrated = parse("adaptive(eos)").calibrate(pages, BUDGETS)
    pooled = []
    for page in pages:
        scores = page.signals["eos"][-1].double().tolist()
        mean = sum(scores) / len(scores)
        deviation = math.sqrt(sum((s - mean) ** 2 for s in scores) / len(scores))
        pooled += [(s - mean) / deviation for s in scores]
    for budget in BUDGETS:
        assert calibrated.thresholds[budget] == pytest.approx(np.quantile(pooled, 1 - budget), abs=1e-9)
    kept = sum(prune(calibrated, page, [0.1]).counts[0] for page in pages)
    assert kept / len(pooled) == pytest.approx(0.1, abs=1 / len(pooled))


def test_a_page_keeps_what_exceeds_its_threshold_and_always_its_best_patch() -> None:
    page = with_eos([0.0, 0, 0, 0, 10])  # mean 2, deviation 4: z = -0.5 four times, and 2
    assert prune(parse("adaptive(eos, z=1.9)"), page, [0.1]).kept(0).tolist() == [4]
    assert prune(parse("adaptive(eos, z=2.1)"), page, [0.1]).kept(0).tolist() == [4]
    assert prune(parse("adaptive(eos, z=-0.6)"), page, [0.1]).counts == (5,)
    assert prune(parse("adaptive(eos, z=-0.5)"), page, [0.1]).counts == (1,), "the comparison is strict"


def test_equal_scores_have_no_spread_and_keep_one_patch_or_all() -> None:
    page = with_eos([3.0] * 6)
    assert prune(parse("docpruner(z=0.0)"), page, [0.1]).kept(0).tolist() == [0]
    assert prune(parse("docpruner(z=-0.1)"), page, [0.1]).counts == (6,)


def test_clipped_statistics_withstand_an_attention_sink() -> None:
    scores = torch.tensor([-1000.0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1000])
    plain, clipped = zscores(scores, clip=False), zscores(scores, clip=True)
    assert (abs(plain[1:-1]) < 0.02).all(), "two outliers make all other patches look alike"
    assert clipped[9] > 0.5
    # quartiles 2.5 and 7.5, fences -5 and 15
    base = np.array([-5, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15.0])
    np.testing.assert_allclose(clipped, (scores.numpy() - base.mean()) / base.std())


def test_docpruner_and_sap_adaptive_are_their_compositions() -> None:
    pages = [synthetic_page(9, 11, seed=i) for i in range(5)]
    for named, composed in [
        ("docpruner", "adaptive(eos)"),
        ("docpruner(clip=true)", "adaptive(eos, clip=true)"),
        ("sap_adaptive(layers=1-2)", "adaptive(sap(layers=1-2))"),
    ]:
        a = prune(parse(named).calibrate(pages, BUDGETS), pages[0], BUDGETS)
        b = prune(parse(composed).calibrate(pages, BUDGETS), pages[0], BUDGETS)
        assert a.counts == b.counts
        assert np.array_equal(a.order, b.order)


def test_without_calibration_the_error_says_what_to_do(page: Page) -> None:
    with pytest.raises(PrunerError, match=r"'adaptive\(eos\)', page .* not calibrated for budget 0\.1; call calibrate"):
        prune(parse("adaptive(eos)"), page, [0.1])
    calibrated = parse("adaptive(eos)").calibrate([page], [0.1])
    with pytest.raises(PrunerError, match=r"not calibrated for budget 0\.2"):
        prune(calibrated, page, [0.2])
    assert parse("adaptive(eos)").thresholds is None, "calibrate returns a new instance"


def test_the_whole_page_is_kept_at_budget_one(page: Page) -> None:
    assert prune(parse("docpruner").calibrate([page], [1.0]), page, [1.0]).counts == (48,)
