"""Averages on the board: the paper's, partial rows, languages, editions, and the headline over budgets."""

import math

import pytest

from harness.submissions.folder import FOLDER
from leaderboard.gather import gather
from leaderboard.headline import area, weights
from leaderboard.rows import expected_languages, make_row, part_of
from leaderboard.views import make_views
from tests.leaderboard import synthetic
from tests.leaderboard.synthetic import PAPER, entry, measured


def test_the_boards_averages_are_the_72_that_the_paper_printed() -> None:
    views = make_views(synthetic.entries(synthetic.paper_submissions()))
    ours = {
        (view.backbone, view.benchmark, line.method.name, row.budget): row.retention
        for view in views
        for line in view.lines
        for row in line.rows.values()
    }
    assert len(PAPER["averages"]) == len(ours) == 72
    for cell in PAPER["averages"]:
        key = cell["model"].replace("_", "-"), cell["benchmark"].replace("_", "-"), cell["method"], cell["gamma"]
        assert ours[key] == pytest.approx(cell["ndcg_at_5_retention_pct"], abs=0.02), key


def test_a_row_without_one_data_set_has_no_average_and_no_rank() -> None:
    whole, rows = measured("kmeans", 0.9, 1)
    partial, _ = measured("random", 0.9, 2)
    partial["cells"] = [cell for cell in partial["cells"] if cell["data_set"] != "minidocs-v1/charts"]
    (view,) = make_views([entry(whole, rows), entry(partial, rows)])
    found = {line.method.name: line for line in view.lines}
    row = found["random"].rows[0.1]
    assert (len(row.data_sets), row.expected) == (6, 7)
    assert row.retention is row.rank is row.interval is row.realised is found["random"].area is None
    assert not row.ndcg
    assert found["kmeans"].rows[0.1].rank == 1


def test_a_missing_language_makes_a_measured_row_partial_but_not_a_reported_mean() -> None:
    record, rows = measured("kmeans", 0.9, 1)
    record["cells"] = [cell for cell in record["cells"] if cell["language"] != "fr"]
    expected = expected_languages([entry(record, rows)])
    assert len(make_row(entry(record, rows), 0.1, expected).data_sets) == 5
    for cell in record["cells"]:
        cell["language"] = ""
    assert make_row(entry(record, None, "reported"), 0.1, expected).complete


def test_languages_are_averaged_before_data_sets() -> None:
    record, rows = measured("kmeans", 0.9, 1)
    row = make_row(entry(record, rows), 0.1, expected_languages([entry(record, rows)]))
    full = rows[rows["budget"] == 1.0].groupby(["data_set", "language"])["ndcg@5"].mean().groupby("data_set").mean()
    kept = rows[rows["budget"] == 0.1].groupby(["data_set", "language"])["ndcg@5"].mean().groupby("data_set").mean()
    assert row.ndcg["5"] == pytest.approx(kept.mean())
    assert row.retention == pytest.approx((100 * kept / full).mean())
    v2 = [name for name in full.index if name.startswith("minidocs-v2/")]
    assert row.parts["v2"] == pytest.approx((100 * kept / full)[v2].mean())


def test_editions_that_are_benchmarks_of_their_own_stand_in_one_row() -> None:
    views = make_views(synthetic.entries(synthetic.paper_submissions()))
    colpali = {view.benchmark: view for view in views if view.backbone == "colpali"}
    first, second = colpali["vidore-v1"], colpali["vidore-v2"]
    for a in first.lines:
        b = next(line for line in second.lines if line.method.name == a.method.name)
        both = {"v1": a.rows[0.1].retention, "v2": b.rows[0.1].retention}
        assert a.rows[0.1].parts == b.rows[0.1].parts == pytest.approx(both)


@pytest.mark.parametrize(
    ("benchmark", "data_set", "part"),
    [
        ("minidocs", "minidocs-v1/articles", "v1"),
        ("vidore", "Vidore2ESGReportsRetrieval", "v2"),
        ("vidore", "VidoreArxivQARetrieval", "v1"),
        ("vidore-v2", "ESG (Human)", "v2"),
        ("mine", "pages", None),
    ],
)
def test_the_edition_of_a_data_set(benchmark: str, data_set: str, part: str | None) -> None:
    assert part_of(benchmark, data_set) == part


def test_the_headline_is_the_area_on_a_log_axis() -> None:
    """By hand: budgets double twice, so the middle one counts half and each end a quarter."""
    assert weights() == pytest.approx([0.25, 0.5, 0.25])
    assert area({0.05: 60.0, 0.1: 80.0, 0.2: 100.0}) == pytest.approx(80)
    assert area({0.05: 100.0, 0.1: 100.0, 0.2: 100.0, 0.5: 3.0}) == 100
    assert area({0.05: 60.0, 0.2: 100.0}) is None
    uneven = (0.01, 0.02, 0.2)
    by_hand = (math.log(2) * (30 + 50) / 2 + math.log(10) * (50 + 90) / 2) / math.log(20)
    assert weights(uneven) @ [30, 50, 90] == pytest.approx(by_hand)


def test_the_submissions_in_the_project_give_the_papers_averages_too() -> None:
    """The same through the front door: imported files, validated, on pinned benchmarks."""
    found = gather(FOLDER, [])
    views = make_views([e for e in found.load() if e.submission.benchmark.name.startswith("vidore")], found.benchmarks)
    ours = {
        (view.backbone, view.benchmark, line.method.name, row.budget): row.retention
        for view in views
        for line in view.lines
        for row in line.rows.values()
        if line.reported and row.complete
    }
    known_as = {"eos_adaptive": "docpruner"}
    for cell in PAPER["averages"]:
        method = known_as.get(cell["method"], cell["method"])
        key = cell["model"].replace("_", "-"), cell["benchmark"].replace("_", "-"), method, cell["gamma"]
        assert ours.pop(key) == pytest.approx(cell["ndcg_at_5_retention_pct"], abs=0.02), key
    assert not ours
