"""The table of per-query results: its cells, its means and its comparison, against means written out by hand."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from harness.metrics.results_table import CellKey, ResultsTable, benchmark_mean
from harness.metrics.uncertainty import compare, compare_tables

# Two languages with 2 and 1 queries, budgets 0.2 before 0.1, two trials.
ROWS = [
    # query, language, budget, trial, ndcg@5, recall
    ("a", "fr", 0.2, 0, 0.1, 1.0),
    ("b", "fr", 0.2, 0, 0.5, 0.0),
    ("c", "en", 0.2, 0, 0.8, 1.0),
    ("a", "fr", 0.2, 1, 0.3, 0.0),
    ("b", "fr", 0.2, 1, 0.9, 0.0),
    ("c", "en", 0.2, 1, 0.4, 0.0),
    ("a", "fr", 0.1, 0, 0.0, 0.0),
    ("b", "fr", 0.1, 0, 0.2, 0.0),
    ("c", "en", 0.1, 0, 0.6, 0.5),
    ("a", "fr", 0.1, 1, 0.0, 0.0),
    ("b", "fr", 0.1, 1, 0.2, 0.0),
    ("c", "en", 0.1, 1, 0.0, 0.5),
]
NAMES = ("query", "language", "budget", "trial", "ndcg@5", "recall")


def columns() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {
        name: list(values) for name, values in zip(NAMES, zip(*ROWS, strict=True), strict=True)
    }
    return found | {"top_10": [["p1", "p2"]] * len(ROWS)}


@pytest.fixture(params=["mapping", "arrow"])
def table(request: pytest.FixtureRequest) -> ResultsTable:
    one = columns() if request.param == "mapping" else pa.table(columns())
    other = {**columns(), "language": [""] * len(ROWS), "budget": [0.5] * len(ROWS), "trial": [0] * len(ROWS)}
    return ResultsTable.of({"tongues": one, "plain": other})


def test_a_cell_has_its_queries_and_measures_trial_by_trial(table: ResultsTable) -> None:
    french = CellKey("tongues", "fr", 0.2)
    assert table.queries[french] == ("a", "b")
    assert table.measures[french]["ndcg@5"].tolist() == [[0.1, 0.5], [0.3, 0.9]]
    assert set(table.measures[french]) == {"ndcg@5", "recall"}  # neither keys nor rankings
    assert table.queries[CellKey("tongues", "en", 0.1)] == ("c",)
    assert len(table.queries) == 2 * 2 + 1


def test_languages_and_budgets_are_those_of_the_data_set(table: ResultsTable) -> None:
    assert table.languages("tongues") == ["en", "fr"]
    assert table.budgets("tongues") == [0.2, 0.1]  # as they came
    assert table.languages("plain") == [""]
    assert table.budgets("plain") == [0.5]


def test_means_go_over_trials_then_queries_then_languages(table: ResultsTable) -> None:
    assert table.per_query(CellKey("tongues", "fr", 0.2)).tolist() == pytest.approx([0.2, 0.7])
    assert table.per_query(CellKey("tongues", "fr", 0.2), "recall").tolist() == pytest.approx([0.5, 0.0])
    assert table.mean("tongues", 0.2) == pytest.approx(((0.1 + 0.5 + 0.3 + 0.9) / 4 + (0.8 + 0.4) / 2) / 2)
    assert table.mean("tongues", 0.1) == pytest.approx((0.1 + 0.3) / 2)
    assert table.mean("tongues", 0.1, "recall") == pytest.approx((0.0 + 0.5) / 2)


def test_tables_are_compared_on_the_queries_of_each_language(table: ResultsTable) -> None:
    full = {name: [value for value, row in zip(values, ROWS, strict=True) if row[3] == 0 and row[2] == 0.2]
            for name, values in columns().items()}  # fmt: skip
    whole = ResultsTable.of({"tongues": {**full, "budget": [1.0] * 3, "ndcg@5": [0.5, 1.0, 1.0]}})
    found = compare_tables([(table, 0.2), (table, 0.1), (whole, None)], whole, ["tongues"], seed=1)
    french = np.array([[0.2, 0.7], [0.0, 0.2], [0.5, 1.0], [0.5, 1.0]])
    english = np.array([[0.6], [0.3], [1.0], [1.0]])
    by_hand = compare([[english, french]], seed=1)
    for name, value in vars(by_hand).items():
        np.testing.assert_allclose(getattr(found, name), value, err_msg=name)


def test_tables_of_replicates_are_averaged_like_single_figures_and_left_as_they_are() -> None:
    one, two, three = (np.full((2, 3), value) for value in (1.0, 2.0, 6.0))
    assert benchmark_mean([one, two, three]).tolist() == [[3.0] * 3] * 2
    assert benchmark_mean([1.0, 2.0, 6.0]) == 3.0
    assert one.tolist() == [[1.0] * 3] * 2
