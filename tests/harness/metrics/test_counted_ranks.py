"""Ranks and best pages that are counted page by page equal those of a plain sort, in any order and however shared."""

import numpy as np
import pytest

from harness.metrics.ranking import Evaluator
from harness.metrics.ranks import JudgedPairs, RankCounts, by_descending_id

PAGES, CELLS, QUERIES, DEPTH = 23, 2, 3, 5


def plain_order(scores: np.ndarray, ids: list[str]) -> list[int]:
    """Pages from the best: by score, equal ones by descending id."""
    return sorted(range(len(ids)), key=lambda page: (scores[page], ids[page]), reverse=True)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("parts", [1, 2, 4])
def test_counts_equal_a_sort(seed: int, parts: int) -> None:
    rng = np.random.default_rng(seed)
    ids = [f"{number:02d}" for number in rng.permutation(PAGES)]
    place = np.empty(PAGES, np.int32)
    place[by_descending_id(ids)] = np.arange(PAGES, dtype=np.int32)
    scores = rng.integers(0, 4, (PAGES, CELLS, QUERIES)).astype(np.float32)  # many pages tie
    rows = np.array([0, 0, 1, 2, 2])
    pages = np.array([*rng.choice(PAGES, 4, replace=False), -1])  # the last judged page is not in the corpus
    judged = JudgedPairs(rows, pages, np.array([2, 0]), place)
    known = np.full((CELLS, len(rows)), -np.inf, np.float32)
    for page in range(PAGES):
        judged.scores(scores[page], page, known)

    total = RankCounts.none(judged, CELLS, DEPTH)
    for part in np.array_split(rng.permutation(PAGES), parts):
        counts = RankCounts.none(judged, CELLS, DEPTH)
        for some in np.array_split(part, 3):
            counts.count(judged, known, scores[some], some)
        total.add(counts)

    ranks = total.ranks(judged, DEPTH)
    for cell in range(CELLS):
        orders = [plain_order(scores[:, cell, query], ids) for query in range(QUERIES)]
        for pair, (query, page) in enumerate(zip(rows[:-1], pages[:-1], strict=True)):
            higher = int((scores[:, cell, query] > scores[page, cell, query]).sum())
            assert ranks[cell, pair] == (orders[query].index(page) + 1 if higher < DEPTH else 0)
        assert ranks[cell, -1] == 0
        for kept, query in enumerate(judged.queries):
            assert total.best[cell, kept].tolist() == [place[page] for page in orders[query][:DEPTH]]
            assert total.heights[cell, kept].tolist() == [scores[page, cell, query] for page in orders[query][:DEPTH]]


def test_a_page_never_stands_above_itself() -> None:
    """Scored a second time, elsewhere, its last digit may come out higher."""
    evaluate = Evaluator({"q": {"a": 1}}, ["q"], ["a", "b"])
    known = np.array([[1.0]], np.float32)
    again = np.nextafter(known, np.float32(2))
    counts = RankCounts.none(evaluate.judged, 1, 1)
    counts.count(evaluate.judged, known, again[None], np.array([0]))
    assert counts.ranks(evaluate.judged, 200).tolist() == [[1]]


def test_ids_in_order_and_out_of_order_give_the_same_places() -> None:
    assert by_descending_id(["a", "b", "c"]).tolist() == [2, 1, 0]
    assert by_descending_id(["b", "a", "c"]).tolist() == [2, 0, 1]
    assert by_descending_id(["c", "b", "a"]).tolist() == [0, 1, 2]


def test_a_corpus_smaller_than_the_depth_keeps_all_its_pages() -> None:
    judged = JudgedPairs(np.array([0]), np.array([1]), np.array([0]), np.array([1, 0], np.int32))
    counts = RankCounts.none(judged, 1, 10)
    scores = np.array([[[0.5]], [[0.25]]], np.float32)
    counts.count(judged, np.array([[0.25]], np.float32), scores, np.array([0, 1]))
    assert counts.best.tolist() == [[[1, 0]]]
    assert counts.ranks(judged, 10).tolist() == [[2]]
    assert counts.ranks(judged, 1).tolist() == [[0]]
