"""The tables of methods in the documentation are those of the board."""

from pathlib import Path
from types import ModuleType

import pytest

from tests.copied_tree import ROOT
from tests.packaging.loaded import script


@pytest.fixture(scope="module")
def results_table() -> ModuleType:
    return script("results_table")


@pytest.mark.slow
def test_the_tables_of_the_documentation_are_the_board(results_table: ModuleType) -> None:
    assert results_table.main(check=True) == 0, "run python scripts/results_table.py"


@pytest.mark.slow
def test_a_changed_figure_is_found_and_written_again(
    results_table: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "docs" / "real-pages.md").read_text(encoding="utf-8")
    page = tmp_path / "page.md"
    assert "| `ward` | 83.6 " in text
    page.write_text(text.replace("| `ward` | 83.6 ", "| `ward` | 93.6 "), encoding="utf-8")
    monkeypatch.setattr(results_table, "PAGES", (page,))
    assert results_table.main(check=True) == 1
    assert results_table.main(check=False) == 0
    assert page.read_text(encoding="utf-8") == text
