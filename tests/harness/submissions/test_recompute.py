"""NDCG computed again from ten stored pages, against trec_eval's own code."""

import numpy as np
import pytest

from harness.metrics.ranking import Evaluator
from harness.submissions.judgements import RANKED, Judgements, Rankings, deeper_bounds, gains, ndcg, pair_mean, rankings
from harness.submissions.tables import PerQuery, Texts


def judged_and_table(rng: np.random.Generator, pages: int, queries: int) -> tuple[Judgements, PerQuery, dict]:
    """Random scores with ties, graded relevance, some queries without a relevant page."""
    page_ids = tuple(f"p{i}" for i in rng.permutation(pages))
    query_ids = [f"q{i}" for i in range(queries)]
    qrels = {}
    for query in query_ids:
        chosen = rng.choice(pages, size=int(rng.integers(1, min(pages, 30))), replace=False)
        qrels[query] = {page_ids[i]: int(rng.integers(0, 4)) for i in chosen}
    judged = Judgements(page_ids, qrels, {})
    scores = rng.integers(0, 15, size=(queries, pages)).astype(np.float32)
    truth = Evaluator(qrels, query_ids, page_ids)
    measured = truth(scores)
    tops = [[page_ids[page] for page in top] for top in truth.best(scores)]
    names = sorted({page for top in tops for page in top})
    codes = np.full((len(tops), 10), -1)
    for i, top in enumerate(tops):
        codes[i, : len(top)] = [names.index(page) for page in top]
    count = len(tops)
    table = PerQuery(
        data_set=Texts(np.zeros(count, int), ["d"]),
        language=Texts(np.zeros(count, int), [""]),
        query=Texts(np.arange(count), list(truth.query_ids)),
        budget=np.ones(count),
        trial=np.zeros(count, int),
        ndcg={},
        score_retention=np.ones(count),
        top=Texts(codes, names),
        length=np.array([len(top) for top in tops]),
    )
    return judged, table, measured


@pytest.mark.parametrize("pages", [3, 10, 40, 300])
def test_ndcg_from_stored_rankings_is_trec_evals(pages: int) -> None:
    judged, table, measured = judged_and_table(np.random.default_rng(pages), pages, 60)
    found = rankings(table, "d", judged)
    again = ndcg(gains(found, judged), found, judged)
    for k in RANKED:
        assert np.abs(again[k] - measured[f"ndcg@{k}"]).max() < 1e-9
    bounds = deeper_bounds(gains(found, judged), found, judged)
    assert tuple(bounds) == (50, 100)
    for k, (low, high) in bounds.items():
        assert (low - 1e-9 <= measured[f"ndcg@{k}"]).all()
        assert (measured[f"ndcg@{k}"] <= high + 1e-9).all()


def test_a_case_by_hand() -> None:
    """Grades 3, 1 and 2; ranking: the page of grade 1, an irrelevant one, the page of grade 3."""
    judged = Judgements(("a", "b", "c", "d"), {"q": {"a": 3, "b": 1, "c": 2}}, {})
    table = PerQuery(
        *(Texts(np.zeros(1, int), [name]) for name in ("d", "", "q")),
        budget=np.ones(1),
        trial=np.zeros(1, int),
        ndcg={},
        score_retention=np.ones(1),
        top=Texts(np.array([[0, 1, 2] + [-1] * 7]), ["b", "d", "a"]),
        length=np.array([3]),
    )
    ideal = 3 + 2 / np.log2(3) + 1 / 2
    found: Rankings = rankings(table, "d", judged)
    again = ndcg(gains(found, judged), found, judged)
    assert again[5][0] == pytest.approx((1 + 0 + 3 / 2) / ideal)
    assert again[1][0] == pytest.approx(1 / 3)


def test_score_retention_counts_pairs_not_queries() -> None:
    assert pair_mean(np.array([1.0, 0.5]), np.array([1, 3])) == pytest.approx((1 + 3 * 0.5) / 4)
