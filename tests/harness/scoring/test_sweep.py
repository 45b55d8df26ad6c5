"""The sweep's scores against a plain double loop in float64 and against sentence-transformers, ragged and negative."""

import harness.compat  # noqa: F401

import itertools

import numpy as np
import pytest
import torch

from harness.scoring import torch_sweep
from harness.scoring.kernels import list_members
from harness.scoring.queries import tile_queries, tile_tokens
from harness.scoring.sweep import score_page
from pruners import Merged, Page, PruneBoardError, Subset, catalogue, parse, prune, synthetic_page

BUDGETS = (0.2, 0.01, 0.1, 1.0, 0.05)  # in no particular order
NEED_A_PART = {"adaptive": "adaptive(eos)", "merge": "merge(eos)"}
METHODS = [*(NEED_A_PART.get(n, n) for n in catalogue() if n != "oracle"), "row_pool(smooth=3)"]  # no groups, no prefix


def queries(count: int, dim: int = 32, seed: int = 0) -> list[torch.Tensor]:
    """Queries of 1 to 40 tokens; the last ones are far from every page, so that their scores are negative."""
    rng = np.random.default_rng(seed)
    made = [rng.standard_normal((int(rng.integers(1, 41)), dim)) for _ in range(count)]
    return [torch.from_numpy(q / np.linalg.norm(q, axis=1, keepdims=True)).float() for q in made]


def double_loop(vectors: torch.Tensor, query: torch.Tensor) -> float:
    total = 0.0
    for token in query.double().tolist():
        total += max(sum(a * b for a, b in zip(token, vector, strict=True)) for vector in vectors.double().tolist())
    return total


def kept_vectors(page: Page, result: Subset | Merged, budget: int) -> torch.Tensor:
    return page.vectors[result.kept(budget)] if isinstance(result, Subset) else result.vectors[budget]


@pytest.fixture(scope="module")
def pruned() -> tuple[list[Page], list[list[Subset | Merged]]]:
    from pruners import Window

    pages = [synthetic_page(*size, seed=i) for i, size in enumerate([(1, 1), (3, 5), (9, 7)])]
    calibration = [synthetic_page(8, 8, seed=i) for i in range(5)]
    methods = [parse(m).with_window(Window(1, 3)).calibrate(calibration, BUDGETS) for m in METHODS]
    return pages, [[prune(method, page, BUDGETS) for method in methods] for page in pages]


@pytest.mark.slow
def test_scores_equal_a_double_loop_in_float64_for_every_method(pruned) -> None:
    asked = queries(4)
    tiles = tile_queries(asked, tile_tokens=30)
    for page, results in zip(*pruned, strict=True):
        scores = score_page(page.vectors, results, tiles)
        cells = [page.vectors] + [kept_vectors(page, r, b) for r in results for b in range(len(BUDGETS))]
        assert scores.shape == (len(cells), 4)
        for row, vectors in zip(scores, cells, strict=True):
            np.testing.assert_allclose(row, [double_loop(vectors, q) for q in asked], atol=1e-5)


@pytest.mark.slow
def test_scores_equal_sentence_transformers_and_need_no_padding(pruned) -> None:
    from sentence_transformers.util import maxsim

    page, results = pruned[0][2], pruned[1][2]
    away = [-page.vectors.mean(0, keepdim=True) * 3 for _ in range(2)]  # opposite to the page: negative maxima
    asked = [*queries(6, seed=3), *away]
    scores = score_page(page.vectors, results, tile_queries(asked))
    cells = [page.vectors] + [kept_vectors(page, r, b) for r in results for b in range(len(BUDGETS))]
    theirs = maxsim(asked, cells).numpy().T
    assert (scores[1:] < 0).any()
    np.testing.assert_allclose(scores, theirs, atol=1e-5)


def test_the_torch_form_for_a_gpu_gives_the_same_scores(pruned) -> None:
    for page, results in zip(*pruned, strict=True):
        tiles = tile_queries(queries(7), tile_tokens=60)
        ours, theirs = score_page(page.vectors, results, tiles), torch_sweep.score_page(page.vectors, results, tiles)
        np.testing.assert_allclose(theirs, ours, atol=1e-5)


def test_swapping_two_methods_orders_is_noticed(pruned) -> None:
    page, results = pruned[0][2], list(pruned[1][2])
    tiles = tile_queries(queries(4))
    right = score_page(page.vectors, results, tiles)
    a, b = METHODS.index("eos"), METHODS.index("random")
    results[a], results[b] = results[b], results[a]
    wrong = score_page(page.vectors, results, tiles)
    assert np.abs(right - wrong).max() > 1e-2


def test_the_size_of_a_tile_changes_nothing(pruned) -> None:
    page, results = pruned[0][2], pruned[1][2]
    asked = queries(9)
    whole = score_page(page.vectors, results, tile_queries(asked, tile_tokens=10_000))
    for tokens in (1, 17, 64):
        np.testing.assert_allclose(score_page(page.vectors, results, tile_queries(asked, tokens)), whole, atol=1e-5)


def test_short_pages_take_more_query_tokens_at_a_time() -> None:
    assert [tile_tokens(n) for n in (2000, 1024, 700, 196, 1)] == [160, 160, 234, 835, 1024]


def test_a_page_alone_scores_as_among_methods() -> None:
    page = synthetic_page(5, 5)
    tiles = tile_queries(queries(3))
    alone = score_page(page.vectors, [], tiles)
    among = score_page(page.vectors, [prune(parse("random"), page, [0.1])], tiles)
    assert np.array_equal(alone[0], among[0])


def test_rows_of_similarities_fill_whole_cache_lines() -> None:
    tiles = tile_queries(queries(20), 50).tiles
    for tile in tiles:
        width = tile.tokens.shape[1]
        assert width % 16 == 0
        assert width - 16 < tile.offsets[-1] <= width
        assert not tile.tokens[:, tile.offsets[-1] :].any()


def test_the_full_page_is_scored_also_where_no_order_names_every_patch() -> None:
    page, asked = synthetic_page(9, 7), queries(3)
    results = [Subset(np.array([5, 2]), (1, 2)), Subset(np.array([7]), (1,))]
    full, *pruned = score_page(page.vectors, results, tile_queries(asked))
    np.testing.assert_allclose(full, [double_loop(page.vectors, q) for q in asked], atol=1e-5)
    for row, kept in zip(pruned, ([5], [5, 2], [7]), strict=True):
        np.testing.assert_allclose(row, [double_loop(page.vectors[kept], q) for q in asked], atol=1e-5)


def test_a_method_alone_scores_as_among_others_to_the_last_bit(pruned) -> None:
    """A killed run goes on with the methods that are missing, and must end with the same bytes."""
    page, tiles = synthetic_page(9, 9, dim=128), tile_queries(queries(30, dim=128))
    results = [prune(parse(text), page, [0.01]) for text in ("kmeans", "row_pool(smooth=3)", "row_pool(smooth=5)")]
    among = score_page(page.vectors, results, tiles)[1:]
    for result, scores in zip(results, among, strict=True):  # one vector alone is multiplied by another routine
        assert np.array_equal(score_page(page.vectors, [result], tiles)[1], scores)


def test_a_query_without_vectors_is_named() -> None:
    with pytest.raises(PruneBoardError, match="query 1 has no vectors"):
        tile_queries([torch.ones(2, 4), torch.ones(0, 4)])


def test_members_are_listed_by_group_of_every_cell() -> None:
    labels = np.array([[0, 1, 1, -1, 2, 0], [1, -1, 0, 0, 0, 1]])
    members, starts = list_members(labels, np.array([0, 3, 5]))
    listed = [members[a:b].tolist() for a, b in itertools.pairwise(starts)]
    assert listed == [[0, 5], [1, 2], [4], [2, 3, 4], [0, 5]]
