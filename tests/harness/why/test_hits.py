"""What was kept, and what queries match: against plain loops over patches, tokens and numbers."""

import numpy as np
import pytest
import torch

from harness.why.hits import NOWHERE, hits_of
from harness.why.kept_vectors import MADE, MERGED, SUBSET, kept_at
from pruners import Page, parse


@pytest.fixture(scope="module")
def page() -> Page:
    draw = torch.Generator().manual_seed(3)
    vectors = torch.nn.functional.normalize(torch.randn(30, 8, generator=draw), dim=1)
    return Page("p", vectors, (5, 6), {"ink": torch.rand(1, 30, generator=draw)})


@pytest.fixture(scope="module")
def query() -> torch.Tensor:
    return torch.nn.functional.normalize(torch.randn(7, 8, generator=torch.Generator().manual_seed(5)), dim=1)


def best_by_loop(query: torch.Tensor, vectors: torch.Tensor) -> tuple[list[int], list[float]]:
    """The argmax of similarities, number by number."""
    places, values = [], []
    for token in query.double().tolist():
        best, at = -float("inf"), -1
        for i, vector in enumerate(vectors.double().tolist()):
            similarity = 0.0
            for a, b in zip(token, vector, strict=True):
                similarity += a * b
            if similarity > best:
                best, at = similarity, i
        places.append(at)
        values.append(best)
    return places, values


def test_of_a_subset_the_kept_patches_are_those_of_the_highest_scores(page: Page) -> None:
    kept = kept_at(parse("ink"), page, [0.1, 0.5], seed=1)
    for each, count in zip(kept, (3, 15), strict=True):
        order = sorted(range(30), key=lambda i: -float(page.signals["ink"][0, i]))
        assert each.kind == SUBSET
        assert set(np.flatnonzero(each.labels >= 0)) == set(order[:count])
        assert torch.equal(each.vectors[each.labels[order[0]]], page.vectors[order[0]])


@pytest.mark.parametrize("text", ["ink", "random", "kmeans", "kmeans(renormalize=false)", "tile_pool", "row_pool"])
def test_hits_are_the_argmax_of_similarities_computed_by_a_plain_loop(page: Page, query: torch.Tensor, text) -> None:
    (kept,) = kept_at(parse(text), page, [0.2], seed=1)
    hits = hits_of(query, page.vectors, kept)
    before, value_before = best_by_loop(query, page.vectors)
    assert hits.before.tolist() == before
    assert hits.similarity_before.tolist() == pytest.approx(value_before, abs=1e-5)
    after, value_after = best_by_loop(query, kept.vectors)
    assert hits.similarity_after.tolist() == pytest.approx(value_after, abs=1e-5)
    for token, (vector, place) in enumerate(zip(after, hits.after.tolist(), strict=True)):
        members = [i for i in range(30) if kept.labels[i] == vector]
        if members:
            inside, _ = best_by_loop(query[token : token + 1], page.vectors[members])
            assert place == members[inside[0]], "it is shown at the patch of its group that the token matches best"
        else:
            assert place == NOWHERE
    assert hits.lost.tolist() == pytest.approx(
        [a - b for a, b in zip(value_before, value_after, strict=True)], abs=1e-5
    )


def test_a_merged_vector_is_the_mean_of_the_patches_that_are_shown_as_its_own(page: Page) -> None:
    (kept,) = kept_at(parse("kmeans(renormalize=false)"), page, [0.2], seed=1)
    assert kept.kind == MERGED
    for vector in range(len(kept)):
        members = kept.patches(vector)
        assert torch.allclose(kept.vectors[vector], page.vectors[members].mean(0), atol=1e-5)
    assert kept.sizes.sum() == 30


def test_vectors_made_in_another_way_are_shown_at_their_nearest_patch(page: Page) -> None:
    pruner = parse("hpc(codes=4)").calibrate([page.offering(())], [0.2])
    (kept,) = kept_at(
        pruner, Page("p", page.vectors, page.grid, {**page.signals, "eos": torch.rand(2, 30)}), [0.2], seed=1
    )
    assert kept.kind == MADE
    nearest, _ = best_by_loop(kept.vectors, page.vectors)
    shown = np.flatnonzero(kept.labels >= 0)
    assert set(shown) == set(nearest)


def test_a_prompt_vector_is_matched_beside_the_page_and_lies_nowhere_on_it(page: Page, query: torch.Tensor) -> None:
    (kept,) = kept_at(parse("ink"), page, [0.2], seed=1)
    hits = hits_of(query, page.vectors, kept, prompt=query[2:3])
    assert (hits.before[2], hits.after[2]) == (NOWHERE, NOWHERE)
    assert hits.lost[2] == pytest.approx(0, abs=1e-6)
    assert (hits.before != NOWHERE).sum() >= 1
