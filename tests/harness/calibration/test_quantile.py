"""Quantile calibration on 128 pages meets the budget on pages it has not seen: the embedded retriever on minidocs."""

import numpy as np
import pytest

from harness.backbones import registry
from harness.benchmarks.benchmark import load_benchmark
from harness.calibration.data import draw
from harness.evaluation.results import drifted
from harness.store.encoded_page import EncodedPage
from pruners import STANDARD, Page, parse, prune

SEEN, EACH = 128, 24


def encoded(backbone, data_set, indices: list[int]) -> list[Page]:
    found: list[Page] = []
    for start in range(0, len(indices), 16):
        batch = indices[start : start + 16]
        pages: list[EncodedPage] = backbone.encode_pages([data_set.image(i) for i in batch])
        found += [
            Page(f"{data_set.name}/{data_set.page_ids[i]}", page.vectors.float(), page.grid, dict(page.signals))
            for i, page in zip(batch, pages, strict=True)
        ]
    return found


@pytest.fixture(scope="module")
def pages() -> tuple[list[Page], list[Page]]:
    """Calibration pages, and unseen pages of all seven data sets."""
    backbone = registry.load("nano")
    (calibration,) = load_benchmark("minidocs-calibration").data_sets
    seen = encoded(backbone, calibration, draw(range(len(calibration.page_ids)), SEEN, 42))
    data_sets = load_benchmark("minidocs").data_sets
    unseen = [
        page
        for data_set in data_sets
        for page in encoded(backbone, data_set, draw(range(len(data_set.page_ids)), EACH, 1))
    ]
    return seen, unseen


@pytest.mark.slow
@pytest.mark.parametrize("text", ["docpruner", "docpruner(clip=true)"])
def test_a_threshold_learned_on_128_pages_meets_the_budget_on_unseen_pages(pages, text: str) -> None:
    seen, unseen = pages
    assert len(seen) == SEEN
    calibrated = parse(text).calibrate(seen, STANDARD)
    kept = np.sum([prune(calibrated, page, STANDARD).counts for page in unseen], axis=0)
    realised = kept / sum(len(page) for page in unseen)
    for budget, ratio in zip(STANDARD, realised, strict=True):
        assert not drifted(ratio, budget), (text, budget, ratio)
    counts = [prune(calibrated, page, STANDARD).counts[1] for page in unseen]
    assert len(set(counts)) > 5, "pages keep different numbers of patches: it is adaptive"
