"""Advice from runs: one that was measured, and its folder with rows made by hand."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import harness
from harness.advice.from_run import run_candidates
from harness.cli import app
from pruners import PruneBoardError


@pytest.fixture(scope="module")
def run(toy, tmp_path_factory: pytest.TempPathFactory) -> harness.Results:
    where = {"backbone": toy.backbone, "benchmark": toy.benchmark, "calibration": toy.calibration}
    more = {"store": toy.folder / "stores", "workers": 1, "out": tmp_path_factory.mktemp("advise") / "run"}
    return harness.evaluate(["sap", "kmeans", "oracle", "docpruner(z=0)"], budgets=(0.1, 0.5), **where, **more)


def rows_of(run: harness.Results, lows: dict[tuple[str, float], tuple[float, float]]) -> harness.Results:
    """The run with other retentions: (method, budget) -> mean and lower bound."""
    rows = []
    for one in run.rows:
        mean, low = lows.get((one["method"], one["budget"]), (50.0, 40.0))
        changed = {} if one["method"] == "full" else {"retention": mean, "retention_interval": [low, 2 * mean - low]}
        rows.append({**one, **changed})
    return harness.Results(run.folder, rows=rows)


@pytest.mark.slow
def test_a_mean_that_qualifies_is_not_advised(run: harness.Results) -> None:
    made = rows_of(run, {("sap", 0.1): (98.5, 97.5), ("kmeans", 0.5): (98.2, 98.0)})
    found = harness.advise(made, keep=98, pages=1e6)
    assert found.chosen is not None
    assert (found.chosen.candidate.text, found.chosen.candidate.budget) == ("kmeans", 0.5)
    (sap,) = [o for o in found.fallen if (o.candidate.text, o.candidate.budget) == ("sap", 0.1)]
    assert "though its mean, 98.5, is not" in sap.faults[0].words


def test_equal_bytes_go_to_the_higher_bound_and_then_to_the_text(run: harness.Results) -> None:
    higher = harness.advise(rows_of(run, {("sap", 0.1): (99, 98.9), ("kmeans", 0.1): (99, 98.8)}), keep=98)
    equal = harness.advise(rows_of(run, {("sap", 0.1): (99, 98.8), ("kmeans", 0.1): (99, 98.8)}), keep=98)
    assert higher.chosen is not None
    assert equal.chosen is not None
    assert (higher.chosen.candidate.text, equal.chosen.candidate.text) == ("sap", "kmeans")


def test_only_the_full_index_is_left_or_nothing(run: harness.Results) -> None:
    made = rows_of(run, {("oracle", 0.1): (101, 100.5), ("sap", 0.5): (99.0, 98.31)})
    found = harness.advise(made, keep=99.5)
    assert found.chosen is not None
    assert found.chosen.candidate.text == "full"
    size = found.chosen.cost.index_gb if found.chosen.cost else 0.0
    none = harness.advise(made, keep=99.5, max_gb=0.9 * size)
    assert none.chosen is None
    assert [one.given_up for one in none.would_give] == [("keep",), ("size",)]
    assert "--keep 98.3: sap at 50 %" in str(none)
    assert any(o.candidate.text == "oracle" and o.faults[0].kind == "barred" for o in none.fallen)


def test_methods_that_read_signals_can_be_left_out(run: harness.Results) -> None:
    made = rows_of(run, {("sap", 0.1): (99, 98.5), ("kmeans", 0.5): (99, 98.5)})
    every, few = harness.advise(made, keep=98), harness.advise(made, keep=98, vectors_only=True)
    assert every.chosen is not None
    assert few.chosen is not None
    assert every.chosen.candidate.text == "sap"
    assert "needs, beside the vectors: " in str(every)
    assert few.chosen.candidate.text == "kmeans"


def test_every_row_of_the_table_is_a_candidate(run: harness.Results) -> None:
    found = list(run_candidates(run))
    assert len(found) == len(run.rows)
    assert {one.status for one in found} == {"own run"}
    by_name = {(one.text, one.budget): one for one in found}
    for row in run.rows[1:]:
        one = by_name[row["method"], row["budget"]]
        assert [one.low, one.high] == row["retention_interval"]
        assert one.own_bytes == row["bytes_per_page"]
        assert bool(one.barred) == (row["method"].startswith("oracle") or "@" in row["method"])
        assert one.prune_ms == row["prune_ms_per_page"]


def test_the_command_says_what_the_function_finds(run: harness.Results) -> None:
    options = ["advise", "--run", str(run.folder), "--keep", "50", "--pages", "2e6"]
    found = harness.advise(run.folder, keep=50, pages=2e6)
    said = CliRunner().invoke(app, [*options, "--json"])
    assert said.exit_code == 0, said.output
    record = json.loads(said.stdout)
    assert found.chosen is not None
    assert record["advised"]["text"] == found.chosen.candidate.text
    assert record["advised"]["cost"]["index_gb"] == found.chosen.candidate.own_bytes * 2e6 / 1e9
    assert len(record["others"]) == len(run.rows) - 1
    assert record["rests_on"]["pages"] == 50
    plain = CliRunner().invoke(app, options)
    assert f"take {found.chosen.candidate.text}" in plain.stdout


def test_codebooks_and_short_vectors_cost_what_they_cost(toy, tmp_path_factory: pytest.TempPathFactory) -> None:
    """By hand: vectors of 16 numbers, pq(8) takes 8 bytes of each and 512 x 16 once, dims(8) 16 and nothing."""
    where = {"backbone": toy.backbone, "benchmark": toy.benchmark, "calibration": toy.calibration}
    more = {"store": toy.folder / "stores", "workers": 1, "out": tmp_path_factory.mktemp("advise") / "coded"}
    coded = harness.evaluate(["kmeans"], budgets=(0.5,), codecs="float16,pq(8),dims(8)", **where, **more)
    rows = {(one.text, one.budget): one for one in run_candidates(coded)}
    whole, book, short = (rows[name] for name in (("full", 1.0), ("kmeans | pq(8)", 0.5), ("kmeans | dims(8)", 0.5)))
    assert whole.own_bytes == 2 * 16 * whole.vectors_per_page
    assert book.shared_bytes == 512 * 16
    assert book.own_bytes == pytest.approx(8 * book.vectors_per_page)
    assert (whole.width, book.width, short.width) == (16, 16, 8)
    found = harness.advise(coded, keep=0.1, pages=1e6)
    (option,) = [o for o in (found.chosen, *found.others) if o and o.candidate.text == "kmeans | pq(8)"]
    assert option.cost is not None
    assert option.cost.index_gb == pytest.approx((8 * book.vectors_per_page * 1e6 + 512 * 16) / 1e9)


def test_mistakes_are_named(run: harness.Results) -> None:
    with pytest.raises(PruneBoardError, match="either a run"):
        harness.advise()
    with pytest.raises(PruneBoardError, match="--keep is a share"):
        harness.advise(run, keep=101)
    with pytest.raises(PruneBoardError, match="--max-gb is a number above 0"):
        harness.advise(run, max_gb=-1)
    with pytest.raises(PruneBoardError, match="no board 'x/y'; --board takes one of"):
        harness.advise(board="x/y")
