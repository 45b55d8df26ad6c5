"""Figures: the check on them sees what it should, and the looks of series never differ by colour alone."""

import sys
from pathlib import Path

from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parent))
from reading_figures import complaints

from harness.experiments import labels
from harness.experiments.figures import LOOKS, bars, legend, line, looks, panels, render


def lines(figure: Figure, names: tuple[str, ...] = ("a", "b"), same: bool = False, label: str = "x [s]") -> None:
    (axes,) = panels(figure, [""])
    look = looks(names)
    for name in names:
        line(axes, [1, 2], [3, 4], look[names[0] if same else name], name)
    axes.set_xlabel(label)
    axes.set_ylabel("y [%]")
    legend(figure, axes)


def test_a_figure_that_can_be_read_has_no_complaints() -> None:
    assert complaints(lines) == []


def test_what_a_reader_would_miss_is_found() -> None:
    assert complaints(lambda figure: lines(figure, same=True)) == ["lines of panel 0 differ by colour alone"]
    assert complaints(lambda figure: lines(figure, label="")) == ["no label on the x axis of panel 0"]

    def bare(figure: Figure) -> None:
        (axes,) = panels(figure, [""])
        kind = dict.fromkeys("ab", LOOKS[1])
        bars(axes, ["1"], {"a": [1.0], "b": [2.0]}, kind)

    assert complaints(bare) == [
        "no label on the y axis",
        "no label on the x axis of panel 0",
        "bars of panel 0 differ by colour alone",
        "no legend",
    ]


def test_every_look_has_its_own_marker_dashes_and_hatch() -> None:
    for part in ("marker", "line", "hatch", "color"):
        assert len({str(getattr(look, part)) for look in LOOKS}) == len(LOOKS), part


def test_a_figure_says_whose_figures_these_are_in_a_papers_words() -> None:
    svg = render(lines, labels.title("colqwen2", "vidore-v2"))["svg"].decode()
    assert "ColQwen2 on ViDoRe v2" in svg
    assert labels.title("jina-v4", None) == "Jina v4", "what depends on no pages names none"


def test_the_same_data_give_the_same_files() -> None:
    first, second = render(lines, "nano"), render(lines, "nano")
    assert set(first) == {"svg", "png"}
    assert first == second
