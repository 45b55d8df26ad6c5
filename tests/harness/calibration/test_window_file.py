"""A window's facts, and its file: the name can be read, and cannot leave its folder."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.backbones.contract import Card
from harness.calibration.window import choose_window
from harness.calibration.window_files import window_file
from pruners import PruneBoardError

CARD = Card("toy", "none", "1", 3, 2, 16, "float32", (), "drawn", "", "", "", "{}")


@pytest.mark.parametrize(("name", "word"), [("colqwen2.5", "colqwen2.5"), ("../a b", ".._a_b"), ("é-1", "é-1")])
def test_a_window_is_kept_under_its_backbones_name(tmp_path: Path, name: str, word: str) -> None:
    path = window_file(tmp_path, SimpleNamespace(card=replace(CARD, name=name)))
    assert path.parent == tmp_path / "windows"
    assert path.name.startswith(f"{word}--")
    assert path.suffix == ".json"


def test_a_curve_without_pairs_says_so() -> None:
    found = choose_window([0.5, 0.6, 0.1])
    assert (found.pairs, found.left_out, found.gamma, found.rho) == (0, 0, 0.1, 0.2)
    assert choose_window([0.5, 0.6, 0.1], pairs=7, left_out=2).left_out == 2


@pytest.mark.parametrize("rho", [0.0, -0.5, 1.1])
def test_a_share_of_layers_is_above_0_and_at_most_1(rho: float) -> None:
    with pytest.raises(PruneBoardError):
        choose_window([0.5, 0.6, 0.1], rho=rho)
