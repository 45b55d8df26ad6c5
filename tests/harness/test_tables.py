"""Tables in a terminal of 80 columns: whatever tells two methods apart is seen, and no column is pushed out."""

import pytest

from harness import console
from harness.commands.evaluate_tables import show_run
from harness.evaluation.config import Config

LONG = [
    *("eos", "merge(adaptive(sap_all_to_visual(layers=1-2), clip=true), factor=3.0)"),
    *("merge(adaptive(sap_all_to_visual(layers=1-2), clip=true), factor=4.0)", f"{'x' * 90}1", f"{'x' * 90}2"),
]


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console.output, "_width", 80)


def pieces(printed: str, start: int, stop: int) -> str:
    """One column, its lines joined."""
    return "".join(line[start:stop] for line in printed.splitlines()).replace(" ", "")


def test_the_table_of_a_check_shows_whole_names_and_all_columns(capsys: pytest.CaptureFixture[str]) -> None:
    columns = {"pruner": "pruner", "page": "page", "vectors": "vectors", "a": "γ 1e-06", "b": "γ 0.05", "c": "γ 0.1"}
    rows = [{"pruner": name, "page": "one long row", "vectors": 192, "a": 1, "b": 10, "c": 4321} for name in LONG]
    console.print_rows(rows, columns, title="", as_json=False)
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert printed.count("4321") == len(LONG)
    names = pieces(printed, 0, printed.splitlines()[0].index("page"))
    assert all(name.replace(" ", "") in names for name in LONG)


def test_the_table_of_an_evaluation_shows_whole_names_and_all_columns(capsys: pytest.CaptureFixture[str]) -> None:
    figures = {"ndcg@5": 0.5, "retention": 101.6, "retention_interval": (101.2, 102.1), "score_retention": 1.0}
    figures |= {"codec": "float16", "output": "subset"}
    figures |= {"realised": 0.1, "drift": False, "bytes_per_page": 5120.0, "vectors_per_page": 196.0}
    rows = [
        {"method": name, "pruner": name, "budget": 0.1, "rank": 1, "prune_ms_per_page": 43.2, **figures}
        for name in ["full", *LONG]
    ]
    show_run(Config(budgets=(0.1,)), rows)
    printed = capsys.readouterr().out
    assert printed.count("43.2") == len(LONG)
    heading = next(line for line in printed.splitlines() if line.startswith("rank"))
    names = pieces(printed, heading.index("method"), heading.index("NDCG") - 2)
    assert all(name.replace(" ", "") in names for name in LONG)
