"""Rules: trec_eval's NDCG (linear gain, ties by descending id), on the top 200 with whole tie groups."""

import math

import numpy as np
import pytest
import pytrec_eval

from harness.metrics import ranking
from harness.metrics.ranking import CUTOFFS, MEASURES, Evaluator, name


def ndcg_by_hand(ranking: list[str], grades: dict[str, int], k: int) -> float:
    gain = sum(grades.get(page, 0) / math.log2(i + 2) for i, page in enumerate(ranking[:k]))
    ideal = sum(g / math.log2(i + 2) for i, g in enumerate(sorted(grades.values(), reverse=True)[:k]))
    return gain / ideal


def random_case(pages: int, seed: int, ties: bool) -> tuple[dict, list[str], list[str], np.ndarray]:
    rng = np.random.default_rng(seed)
    page_ids = [f"p{i:04d}" for i in rng.permutation(pages)]
    query_ids = [f"q{i}" for i in range(12)]
    scores = rng.standard_normal((12, pages)).astype(np.float32)
    if ties:
        scores = np.round(scores, 1)
    qrels = {
        q: {p: int(rng.integers(1, 4)) for p in rng.choice(page_ids, size=rng.integers(1, 6), replace=False)}
        for q in query_ids
    }
    return qrels, query_ids, page_ids, scores


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("pages", [30, 1500])
def test_the_top_200_give_the_figures_of_the_whole_ranking(pages: int, ties: bool) -> None:
    qrels, query_ids, page_ids, scores = random_case(pages, pages, ties)
    ours = Evaluator(qrels, query_ids, page_ids)(scores)
    whole = pytrec_eval.RelevanceEvaluator(qrels, {f"ndcg_cut_{k}" for k in CUTOFFS}).evaluate(
        {q: dict(zip(page_ids, map(float, row), strict=True)) for q, row in zip(query_ids, scores, strict=True)}
    )
    for k in CUTOFFS:
        assert ours[f"ndcg@{k}"].tolist() == [whole[q][f"ndcg_cut_{k}"] for q in query_ids]


@pytest.mark.parametrize("ties", [False, True])
def test_pages_below_the_last_judged_one_change_no_figure(ties: bool) -> None:
    """Every measure, bit for bit: with judged pages of grade 0, one that is not in the corpus, and a query of those."""
    qrels, query_ids, page_ids, scores = random_case(150, 7, ties)
    for query in query_ids[:6]:
        qrels[query] |= {"elsewhere": 2, page_ids[3]: 0}
    qrels[query_ids[0]] = {"elsewhere": 1}
    ours = Evaluator(qrels, query_ids, page_ids)(scores)
    whole = pytrec_eval.RelevanceEvaluator(qrels, set(MEASURES)).evaluate(
        {q: dict(zip(page_ids, map(float, row), strict=True)) for q, row in zip(query_ids, scores, strict=True)}
    )
    for measure in MEASURES:
        assert ours[name(measure)].tolist() == [whole[q][measure] for q in query_ids]


def test_a_page_below_the_top_200_is_not_found_unless_it_ties_with_them() -> None:
    """Page 0 ranks 202nd; in the second query it has the score of the 200th, and the lowest id of three with it."""
    page_ids = [f"p{i:03d}" for i in range(250)]
    scores = np.tile(np.arange(250, 0, -1, dtype=np.float32), (2, 1))
    scores[0, 0], scores[1, 0] = scores[0, 201] - 0.5, scores[1, 200]
    scores[1, 199] = scores[1, 200]
    found = Evaluator({"a": {"p000": 1}, "b": {"p000": 1}}, ["a", "b"], page_ids)(scores)
    assert found["mrr"].tolist() == [0, pytest.approx(1 / 201)]


@pytest.mark.parametrize(
    ("above", "equal", "rank"),
    [
        (0, 0, 1),
        (198, 0, 199),
        (199, 0, 200),
        (200, 0, 0),
        (201, 0, 0),
        (198, 1, 200),
        (198, 2, 201),  # the cut would split these three: they count as a whole
        (199, 1, 201),
        (199, 60, 260),
        (200, 1, 0),
    ],
)
def test_the_top_200_end_after_the_200th_page_and_never_within_a_tie(above: int, equal: int, rank: int) -> None:
    """A page with so many `above` it and so many of its own score with a higher id; 30 with a lower id change nothing.

    Rank 0: not found. Expected, as a second opinion: sorted by score and id, cut where 200 others have a higher score.
    """
    page_ids = [f"p{i:03d}" for i in np.random.default_rng(rank).permutation(400)]
    judged = "p200"
    higher, lower = [f"p{i:03d}" for i in range(201, 400)], [f"p{i:03d}" for i in range(30)]
    scores = dict.fromkeys(page_ids, 1.0) | dict.fromkeys([*lower, judged, *higher[:equal]], 2.0)
    rest = [page for page, score in scores.items() if score == 1]
    scores |= {page: 3.0 + i for i, page in enumerate(rest[:above])}
    order = sorted(page_ids, key=lambda page: (scores[page], page), reverse=True)
    counted = [page for page in order if sum(other > scores[page] for other in scores.values()) < 200]
    assert (order.index(judged) + 1 if judged in counted else 0) == rank
    found = Evaluator({"q": {judged: 1}}, ["q"], page_ids)(np.array([[scores[page] for page in page_ids]]))
    assert found["mrr"][0] == pytest.approx(1 / rank if rank else 0)


def test_of_two_judged_pages_the_one_below_the_top_200_does_not_count() -> None:
    """Ranks 2 and 201, by hand: the ideal has both, the ranking one."""
    page_ids = [f"p{i:03d}" for i in range(300)]
    scores = np.arange(300, 0, -1, dtype=np.float32)[None]
    found = Evaluator({"q": {"p001": 1, "p200": 1}}, ["q"], page_ids)(scores)
    assert found["ndcg@100"][0] == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3)))
    assert found["recall@100"][0] == 0.5
    assert found["mrr"][0] == 0.5


@pytest.mark.parametrize("known", [0, 20_000])
def test_cells_are_measured_together_as_each_alone(monkeypatch: pytest.MonkeyPatch, known: int) -> None:
    """Also where figures of earlier cells were forgotten."""
    monkeypatch.setattr(ranking, "MOST_KNOWN", known)
    qrels, query_ids, page_ids, scores = random_case(60, 3, ties=True)
    cells = np.stack([scores, -scores, scores[:, ::-1], np.abs(scores)]).reshape(2, 2, *scores.shape)
    together = Evaluator(qrels, query_ids, page_ids)
    together(cells[::-1])
    found, best = together(cells), together.best(cells)
    for place in np.ndindex(2, 2):
        alone = Evaluator(qrels, query_ids, page_ids)
        assert np.array_equal(best[place], alone.best(cells[place]))
        for measure, values in alone(cells[place]).items():
            assert np.array_equal(found[measure][place], values)


def test_ndcg_is_linear_in_the_grade_and_ties_go_to_the_higher_id() -> None:
    qrels, query_ids, page_ids, scores = random_case(40, 1, ties=True)
    evaluate = Evaluator(qrels, query_ids, page_ids)
    ours, best, all_pages = evaluate(scores), evaluate.best(scores), evaluate.best(scores, 40)
    for row, query in enumerate(query_ids):
        order = sorted(zip(scores[row], page_ids, strict=True), reverse=True)  # equal scores: descending id
        ranking = [page for _, page in order]
        assert [page_ids[page] for page in all_pages[row]] == ranking
        assert [page_ids[page] for page in best[row]] == ranking[:10]
        for k in CUTOFFS:
            assert ours[f"ndcg@{k}"][row] == pytest.approx(ndcg_by_hand(ranking, qrels[query], k), abs=1e-6)


def test_recall_and_mrr_by_hand() -> None:
    evaluate = Evaluator({"q": {"a": 1, "d": 1}}, ["q"], ["a", "b", "c", "d"])
    found = evaluate(np.array([[0.1, 0.9, 0.8, 0.7]]))
    assert found["mrr"] == pytest.approx(1 / 3)
    assert found["recall@1"] == 0
    assert found["recall@5"] == 1


def test_queries_without_a_relevant_page_are_left_out() -> None:
    evaluate = Evaluator({"q1": {"a": 1}, "q2": {"a": 0}, "q3": {}}, ["q0", "q1", "q2", "q3"], ["a", "b"])
    assert evaluate.query_ids == ["q1"]
    assert evaluate(np.zeros((4, 2)))["ndcg@5"].shape == (1,)
