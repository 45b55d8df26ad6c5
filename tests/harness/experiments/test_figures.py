"""Figures: the check on them sees what it should, and the looks of series never differ by colour alone."""

import sys
from pathlib import Path

from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parent))
from reading_figures import complaints

from harness import paper
from harness.drawing import labels
from harness.drawing.figures import LOOKS, bars, legend, line, looks, panels, render
from harness.experiments.probes import draw_drops, drop_factor


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


def test_the_base_probe_draws_the_papers_figure_from_the_papers_numbers() -> None:
    """In the window against after it, four series, and how many times larger the fine-tuned model's drop is."""
    rows = [
        {
            "budget": row["gamma"],
            "attention": source,
            "in_window": row[key][0],
            "after": row[key][1],
            "drop_factor": drop_factor(row["fine_tuned_drop"], row["base_drop"]),
        }
        for row in paper.of_model("base_probe", "colpali")
        for source, key in (("fine-tuned", "fine_tuned"), ("base", "base"))
    ]

    def draw(figure: Figure) -> None:
        (axes,) = panels(figure, [""])
        draw_drops(axes, rows)
        legend(figure, axes, 2)

    assert complaints(draw) == []
    svg = render(draw, "ColPali")["svg"].decode()
    assert "2.9 × the base" in svg
    assert "8.0 × the base" in svg
    rows = [{**row, "after": None, "drop_factor": None} for row in rows]
    assert complaints(draw) == [], "a backbone without an alignment region has points and no lines"


def test_the_same_data_give_the_same_files() -> None:
    first, second = render(lines, "nano"), render(lines, "nano")
    assert set(first) == {"svg", "png"}
    assert first == second


def test_a_legend_that_would_be_cut_takes_fewer_columns() -> None:
    def draw(figure: Figure) -> None:
        (axes,) = panels(figure, [""])
        axes.set(xlabel="x", ylabel="y")
        for i, kind in enumerate(LOOKS[:5]):
            line(axes, [0, 1], [0, i], kind, f"a series with a rather long name {i}")
        legend(figure, axes, 3)

    assert complaints(draw) == []
