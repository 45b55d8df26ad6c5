"""Intervals and ranks on the board are those of `harness/metrics/uncertainty`, also across runs."""

import numpy as np
import pytest

from harness.metrics.uncertainty import compare, tie_groups
from leaderboard.bootstrap import measured as read
from leaderboard.bootstrap import resample
from leaderboard.headline import weights
from leaderboard.views import make_views
from tests.leaderboard import synthetic
from tests.leaderboard.synthetic import BUDGETS, DATA_SETS, entry, measured


def arrays(frames: list, budget: float) -> list[list[np.ndarray]]:
    """What `compare` takes, written down plainly."""

    def one(frame, data_set: str, language: str, at: float) -> np.ndarray:
        here = frame[(frame["data_set"] == data_set) & (frame["language"] == language) & (frame["budget"] == at)]
        return here.groupby("query")["ndcg@5"].mean().to_numpy()

    return [
        [np.vstack([*(one(f, d, lang, budget) for f in frames), one(frames[0], d, lang, 1.0)]) for lang in languages]
        for d, languages in DATA_SETS.items()
    ]


def test_a_views_intervals_and_ranks_are_those_of_the_one_bootstrap() -> None:
    submissions = [measured(name, q, i) for i, (name, q) in enumerate({"random": 0.6, "sap": 0.9, "eos": 0.88}.items())]
    (view,) = make_views([entry(*s) for s in submissions])
    plain = compare(arrays([frame for _, frame in submissions], 0.1))
    ranks = tie_groups(plain, [0, 1, 2])
    for i, (record, _) in enumerate(submissions):
        row = next(line for line in view.lines if line.method.name == record["method"]["name"]).rows[0.1]
        assert row.interval is not None
        assert (row.interval.low, row.interval.high) == pytest.approx(
            (plain.retention_interval(i).low, plain.retention_interval(i).high), abs=1e-9
        )
        assert row.retention == pytest.approx(plain.retention[i])
        assert row.rank == ranks[i]
    assert sorted(ranks) == [1, 1, 3]


def test_the_same_figures_under_two_names_share_a_rank_on_the_board() -> None:
    """The one below them has the rank after both."""
    twins = [measured("sap", 0.9, 1), measured("eos", 0.9, 1)]
    (view,) = make_views([entry(*s) for s in (*twins, measured("random", 0.3, 3))])
    for budget in BUDGETS:
        ranks = {line.method.name: line.rows[budget].rank for line in view.lines}
        assert ranks == {"sap": 1, "eos": 1, "random": 3}


def test_submissions_of_different_runs_are_paired() -> None:
    """Each has a full model of its own. Resampled apart, their difference is as sharp as resampled together."""
    (_, a), (_, b) = measured("sap", 0.9, 1), measured("eos", 0.9, 1)  # the same figures
    b = b.copy()
    b.loc[b["budget"] == 1.0, "ndcg@5"] *= 0.999999  # another run: not the same bytes
    records = [measured("sap", 0.9, 1)[0], measured("eos", 0.9, 1)[0]]
    both = [read(entry(r, f), BUDGETS) for r, f in zip(records, (a, b), strict=True)]
    assert both[0].full != both[1].full
    found = resample(both, list(DATA_SETS))
    gap = found.difference(0, 1, 0.1)
    assert abs(gap.low) < 0.001
    assert abs(gap.high) < 0.001
    assert found.interval(0, 0.1).high - found.interval(0, 0.1).low > 1


def test_the_headline_has_an_interval_of_its_own() -> None:
    record, frame = measured("sap", 0.9, 1)
    found = resample([read(entry(record, frame), BUDGETS)], list(DATA_SETS))
    areas = found.areas(BUDGETS)
    cells = [found.places[0, budget] for budget in BUDGETS]
    replicates = found.comparison.retention_replicates[:, cells] @ weights()
    low, high = np.quantile(replicates, [0.025, 0.975])
    interval = areas.interval(0, 1.0)
    assert (interval.low, interval.high) == pytest.approx((low, high))


def test_other_queries_are_not_compared() -> None:
    records = [measured("sap", 0.9, 1), measured("eos", 0.9, 2), measured("random", 0.5, 3, queries=21)]
    (view,) = make_views([entry(*r) for r in records])
    found = {line.method.name: line.rows[0.1] for line in view.lines}
    assert found["random"].interval is found["random"].rank is None
    assert found["sap"].rank == 1


def test_reported_rows_are_ranked_apart_and_diagnostics_not_at_all() -> None:
    paper, _ = measured("sap", 0.2, 1)
    paper["id"] = "paper"
    entries = [entry(*measured("eos", 0.9, 2)), entry(*measured("oracle", 0.99, 3)), entry(paper, None, "reported")]
    (view,) = make_views(entries)
    ranks = {line.method.name: line.rows[0.1].rank for line in view.lines}
    assert ranks == {"eos": 1, "oracle": None, "sap": 1}


def test_text_token_backbones_are_never_in_a_view_with_visual_ones() -> None:
    words = measured("sap", 0.9, 2, backbone__kind="text tokens", id="words")
    views = make_views(synthetic.entries([measured("sap", 0.9, 1), words]))
    assert [(view.kind, len(view.lines)) for view in views] == [("visual", 1), ("text tokens", 1)]
    assert len({view.slug for view in views}) == 2
