"""What of the paper comes out is said in one place, and the docs say the same."""

from pathlib import Path

from harness.experiments.reference import experiment_table, with_experiment_table
from harness.experiments.registry import EXPERIMENTS
from pruners import SWEEP

DOCS = Path(__file__).parents[3] / "docs" / "experiments.md"


def test_the_docs_have_the_table_of_the_code() -> None:
    """If this fails: python scripts/export_experiments.py"""
    text = DOCS.read_text(encoding="utf-8")
    assert with_experiment_table(text) == text
    for name in EXPERIMENTS:
        assert f"| `{name}` |" in experiment_table()


def test_every_experiment_says_what_comes_out_and_what_does_not() -> None:
    for experiment in EXPERIMENTS.values():
        assert experiment.reproduces, experiment.name
        assert experiment.cannot, experiment.name
        assert "|" not in experiment.reproduces + experiment.cannot, "it would break the table"


def test_the_budget_curve_has_as_many_budgets_as_it_says() -> None:
    assert (len(SWEEP), sum(budget < 0.05 for budget in SWEEP)) == (12, 3)
    assert "twelve budgets, three of them below 0.05" in EXPERIMENTS["budget-curve"].reproduces
