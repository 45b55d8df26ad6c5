"""From scores to a summary, by hand: pages of 10 and 30 vectors, and two queries with one of them as gold page each.

The full model scores 10 and 40 on the two gold pairs, and ranks both first.
"""

import math
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from harness import parquet
from harness.benchmarks.data_set import DataSet
from harness.evaluation import run_folder
from harness.evaluation.kept_counts import KeptCounts, KeptRows
from harness.evaluation.methods import FULL, Method
from harness.evaluation.results import DataSetEvaluator, Result
from harness.evaluation.run_folder import KEPT_FORM, RunFolder, kept_table, read_kept
from harness.evaluation.scores import PageScores
from harness.evaluation.summary import summarise
from harness.evaluation.tally import PageFacts, Tally
from harness.metrics.ranking import Evaluator
from pruners import parse

BUDGETS = (0.1, 0.2)
DIM, BITS = 2, 16
PROMPT = 6  # vectors of both pages together
FULL_SCORES = np.array([[10, 4], [8, 40]], np.float32)  # queries x pages
SECOND = 1 / math.log2(3)  # NDCG of a gold page in the second place
TRIALS = np.array(
    [
        # budget 0.1             budget 0.2
        [[[5, 4], [8, 20]], [[8, 4], [8, 30]]],  # ratios 0.5, 0.5 and 0.8, 0.75
        [[[2, 4], [8, 36]], [[10, 4], [8, 40]]],  # ratios 0.2 (and the second place), 0.9 and 1, 1
    ],
    np.float32,
)
KEPT = np.array([[[1, 3], [2, 6]], [[2, 4], [2, 8]]])  # trials x budgets x pages


def evaluator(name: str = "by hand") -> DataSetEvaluator:
    def no_image(index: int) -> None:
        raise AssertionError("no image is looked at")

    queries, qrels = {"q1": "one", "q2": "two"}, {"q1": {"a": 1}, "q2": {"b": 1}}
    return DataSetEvaluator.of(DataSet(name, ("a", "b"), no_image, queries, qrels), ("q1", "q2"))


def method(text: str, trials: int = 1) -> Method:
    return Method(text, parse(text), trials)


def scored(text: str, cells: np.ndarray, kept: np.ndarray) -> Tally:
    """A tally of both pages, as if they had been pruned and scored."""
    evaluate, only = evaluator().evaluate, method(text, len(cells))
    tables = np.concatenate([FULL_SCORES[None], cells.reshape(-1, 2, 2)])
    counts, known = evaluate.count(tables)
    bits = (kept.sum(-1) + PROMPT) * DIM * BITS
    vectors = np.concatenate([[[10, 30]], kept.reshape(-1, 2)])
    facts = PageFacts(np.arange(2), vectors, bits.ravel(), np.zeros(1), PROMPT, {})
    found = Tally.begin([only], BUDGETS, evaluate)
    found.known[:] = known
    found.counts.add(counts)
    found.add(facts)
    return found


def result(text: str, cells: np.ndarray, kept: np.ndarray, name: str = "by hand") -> Result:
    return evaluator(name).method(method(text, len(cells)), scored(text, cells, kept), DIM)


def test_the_summary_of_several_trials_is_their_mean() -> None:
    first, second = result("random", TRIALS, KEPT).summary
    assert [entry["budget"] for entry in (first, second)] == [0.1, 0.2]
    assert [entry["trials"] for entry in (first, second)] == [2, 2]
    assert first["score_retention"] == pytest.approx(((0.5 + 0.5) / 2 + (0.2 + 0.9) / 2) / 2)
    assert first["score_retention_micro"] == pytest.approx(((5 + 20) / 50 + (2 + 36) / 50) / 2)
    assert second["score_retention"] == pytest.approx(((0.8 + 0.75) / 2 + 1) / 2)
    assert second["score_retention_micro"] == pytest.approx(((8 + 30) / 50 + 1) / 2)
    assert first["realised"] == pytest.approx((4 + 6) / 2 / 40)
    assert second["realised"] == pytest.approx((8 + 10) / 2 / 40)
    assert first["vectors_per_page"] == pytest.approx((5 + PROMPT) / 2)
    assert second["bytes_per_page"] == pytest.approx((9 + PROMPT) * DIM * 2 / 2)
    assert first["trial_deviation_ndcg@5"] == pytest.approx((1 - (1 + SECOND) / 2) / 2)
    assert second["trial_deviation_ndcg@5"] == 0
    assert first["pairs_left_out"] == 0


def test_rows_have_every_query_of_every_trial() -> None:
    rows = result("random", TRIALS, KEPT).per_query
    assert rows["query"].tolist() == ["q1", "q2"] * 4
    assert rows["budget"].tolist() == [0.1] * 4 + [0.2] * 4
    assert rows["trial"].tolist() == [0, 0, 1, 1] * 2
    assert rows["score_retention"].tolist() == pytest.approx([0.5, 0.5, 0.2, 0.9, 0.8, 0.75, 1, 1])
    assert rows["ndcg@5"].tolist() == pytest.approx([1, 1, SECOND, 1, 1, 1, 1, 1])
    assert [list(top) for top in rows["top_10"]][1:3] == [["b", "a"], ["b", "a"]]


def test_the_full_model_keeps_everything() -> None:
    (entry,) = evaluator().full(scored("eos", TRIALS[:1], KEPT[:1]), DIM).summary
    assert (entry["budget"], entry["realised"], entry["score_retention"]) == (1, 1, 1)
    assert entry["vectors_per_page"] == (40 + PROMPT) / 2
    assert entry["bytes_per_page"] == (40 + PROMPT) * DIM * 2 / 2


@pytest.mark.parametrize(
    ("text", "kept", "drift"),
    [
        ("docpruner", [4, 8], [False, False]),
        ("docpruner", [4, 9], [False, True]),  # 0.225 at 0.2: more than 5 % of it too many
        ("docpruner", [3, 8], [True, False]),  # 0.075 at 0.1
        ("eos", [4, 8], [False, False]),
        ("eos", [6, 12], [False, False]),  # ⌈γN⌉ on short pages is more than γ: a fixed budget is not missed by that
    ],
)
def test_an_adaptive_method_drifts_where_it_misses_its_budget_and_a_fixed_one_never(
    text: str, kept: Sequence[int], drift: list[bool]
) -> None:
    counts = np.array([[[1, count - 1] for count in kept]])
    found = result(text, TRIALS[:1], counts)
    assert [entry["drift"] for entry in found.summary] == drift


def write_run(folder: Path, found: dict[str, list[Result]]) -> RunFolder:
    """A run of two data sets: for each method its results on both."""
    run = RunFolder(folder)
    for name in ("one", "two"):
        run.write_result(FULL, evaluator(name).full(scored("eos", TRIALS[:1], KEPT[:1]), DIM), {})
    for text, results in found.items():
        for each in results:
            run.write_result(method(text).slug, each, {})
    return run


def test_a_row_of_the_table_is_the_mean_over_data_sets_of_the_mean_over_trials(tmp_path: Path) -> None:
    """On the second data set the two budgets have changed places."""
    one, two = result("random", TRIALS, KEPT, "one"), result("random", TRIALS[:, ::-1], KEPT[:, ::-1], "two")
    run = write_run(tmp_path, {"random": [one, two]})
    run.add_timings("one", {"random": 3.0})
    run.add_timings("two", {"random": 5.0, "eos": 80.0})
    full, *rows = summarise(run, ["one", "two"], [method("random", 2)], BUDGETS)
    assert [row["budget"] for row in rows] == [0.1, 0.2]
    for row in rows:
        assert row["score_retention"] == pytest.approx((0.525 + 0.8875) / 2)
        assert row["ndcg@5"] == pytest.approx(((1 + (1 + SECOND) / 2) / 2 + 1) / 2)
        assert row["retention"] == pytest.approx(100 * row["ndcg@5"]), "the full model finds every page first"
        assert row["realised"] == pytest.approx((0.125 + 0.225) / 2)
        assert row["vectors_per_page"] == pytest.approx(((5 + PROMPT) / 2 + (9 + PROMPT) / 2) / 2)
        assert row["prune_ms_per_page"] == 4
        assert row["rank"] == 1
    assert (full["method"], full["ndcg@5"], full["realised"], full["vectors_per_page"]) == ("full", 1, 1, 23)


def test_a_method_without_timings_has_none(tmp_path: Path) -> None:
    run = write_run(tmp_path, {"eos": [result("eos", TRIALS[:1], KEPT[:1], name) for name in ("one", "two")]})
    assert [row["prune_ms_per_page"] for row in summarise(run, ["one", "two"], [method("eos")], BUDGETS)[1:]] == [
        None,
        None,
    ]
    run.add_timings("two", {"eos": 7.0})
    assert summarise(run, ["one", "two"], [method("eos")], BUDGETS)[1]["prune_ms_per_page"] == 7


@pytest.mark.parametrize(
    ("text", "kept", "drift", "data_sets"),
    [
        ("docpruner", (8, 8), False, 0),
        ("docpruner", (8, 9), True, 1),  # 0.2 and 0.225: 0.2125 on average
        ("docpruner", (6, 10), False, 2),  # each missed, and met on average
        ("eos", (9, 9), False, 0),
    ],
)
def test_a_row_drifts_by_its_mean_and_counts_the_data_sets_that_do(
    tmp_path: Path, text: str, kept: tuple[int, int], drift: bool, data_sets: int
) -> None:
    counts = [np.array([[[1, 3], [2, count - 2]]]) for count in kept]
    both = [result(text, TRIALS[:1], count, name) for count, name in zip(counts, ("one", "two"), strict=True)]
    rows = summarise(write_run(tmp_path, {text: both}), ["one", "two"], [method(text)], BUDGETS)
    (row,) = [row for row in rows if row["budget"] == 0.2]
    assert (row["drift"], row["drifting_data_sets"]) == (drift, data_sets)


def test_facts_of_pages_become_those_of_methods() -> None:
    """Three pages in two portions, two trials of one method and one of another."""
    qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
    found = Tally.begin([method("random", 2), method("eos")], BUDGETS, Evaluator(qrels, ["q1", "q2"], ["a", "b", "c"]))
    pages = []
    for page, seconds in enumerate([(0.3, 0.02), (0.5, 0.04), (0.4, 0.06)]):
        kept = 10 * np.arange(6) + page
        failures = {"eos": f"page {page}"} if page else {}
        pages.append(
            PageScores(np.zeros((7, 2), np.float32), kept, 32 * kept, np.array(seconds), failures, 4 + page, 1)
        )
    found.add(PageFacts.of([2, 0], [pages[2], pages[0]]))
    found.add(PageFacts.of([1], [pages[1]]))
    assert found.failures == {"eos": "page 1"}, "of the first page, whoever came first"
    assert found.milliseconds == {"random": pytest.approx(1200 / 3 / 2)}
    assert found.prompt_vectors == 3
    assert found.kept.rows([0])[0].tolist() == [4, 5, 6], "the full pages"
    for text, cells in (("random", [[0, 1], [2, 3]]), ("eos", [[4, 5]])):
        assert (found.cells(method(text)) - 1).tolist() == cells
    for cell in range(6):
        assert found.kept.rows([1 + cell])[0].tolist() == [10 * cell + page for page in range(3)]
    assert found.vectors.tolist() == [15, *(30 * cell + 3 for cell in range(6))]
    assert found.bits.tolist() == [32 * (30 * cell + 3) for cell in range(6)]


def plainly(budgets: Sequence[float], kept: np.ndarray) -> bytes:
    """A table of what was kept, made of Python's lists."""
    rows = [(budget, trial, kept[trial, b].tolist()) for b, budget in enumerate(budgets) for trial in range(len(kept))]
    return parquet.pack(dict(zip(KEPT_FORM, zip(*rows, strict=True), strict=True)), KEPT_FORM)


@pytest.mark.parametrize("shape", [(1, 3, 1000), (10, 2, 7), (2, 1, 0)])
def test_what_was_kept_is_written_as_a_plain_table(shape: tuple[int, int, int]) -> None:
    kept = np.random.default_rng(0).integers(0, 800, shape)
    budgets = [0.05, 0.1, 0.2][: shape[1]]
    assert kept_table(budgets, kept) == plainly(budgets, kept)


def test_what_was_kept_of_many_pages_is_packed_in_pieces_and_read_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_folder, "PACKED", 250)
    kept = np.random.default_rng(0).integers(0, 800, (3, 2, 100))
    path = tmp_path / "kept.parquet"
    path.write_bytes(kept_table([0.1, 0.2], kept))
    assert pq.read_metadata(path).num_row_groups == 3  # of six rows, two of 100 pages at once
    assert (read_kept(path.read_bytes(), 2) == kept).all()
    assert parquet.read(path, KEPT_FORM)["kept"].to_pylist() == kept.transpose(1, 0, 2).reshape(6, 100).tolist()


def test_of_what_was_kept_of_many_pages_a_few_rows_are_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_folder, "PACKED", 250)
    held: list[weakref.ref[np.ndarray]] = []
    in_memory: list[int] = []

    class Watched(KeptRows):
        def rows(self, ats: Sequence[tuple[int, int]]) -> np.ndarray:
            found = super().rows(ats)
            held.append(weakref.ref(found))
            in_memory.append(sum(len(rows) for one in held if (rows := one()) is not None))
            return found

    kept_table([0.1, 0.2], Watched(KeptCounts(20, 100), np.arange(20).reshape(10, 2)))
    assert in_memory == [2] * 10, "of twenty rows the two that are packed together"
