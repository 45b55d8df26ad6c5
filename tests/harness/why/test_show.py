"""`harness show`: what is drawn is what the methods keep, in every form; and a user's mistakes have names."""

import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import harness
from harness.cli import app
from harness.why.figure import picture
from pruners import PruneBoardError, parse, prune
from tests.harness.why.world import World


def draw(world: World, page="page-203", pruners=("ink", "kmeans"), **more):
    places = {"backbone": world.backbone, "benchmark": world.benchmark, "calibration": world.calibration}
    return harness.show(page, pruners, **{**places, "store": world.stores, **more})


def test_the_cells_hold_what_prune_returns(world: World) -> None:
    view = draw(world, budgets=[0.1, 0.3]).view
    page = harness.encode(world.backbone, world.benchmark, store=world.stores)["plain"].page(3)
    assert [[cell.budget for cell in row] for row in view.rows] == [[0.1, 0.3]] * 2
    for cell in view.rows[0]:
        kept = prune(parse("ink"), page, budget=cell.budget)
        assert set(np.flatnonzero(cell.kept.labels >= 0)) == set(kept.indices.tolist())
    assert "merged" in view.rows[1][0].told


def test_a_page_that_is_in_no_store_is_encoded_alone_and_gives_the_same(world: World, tmp_path: Path) -> None:
    there, alone = draw(world, query="find 203 3"), draw(world, query="find 203 3", store=tmp_path)
    for one, other in zip(there.view.cells, alone.view.cells, strict=True):
        assert one.kept.labels.tolist() == other.kept.labels.tolist()
        assert one.hits.similarity_after.tolist() == pytest.approx(other.hits.similarity_after.tolist(), abs=1e-3)
    assert not list(tmp_path.glob("*plain*")), "the other pages were not"


def test_a_query_by_its_id_shows_its_gold_page(world: World) -> None:
    view = draw(world, page=None, data_set="plain", query="q4").view
    assert view.page_id == "page-204"
    assert view.query.text == "find 204 4"
    assert len(view.query.tokens) == len(view.rows[0][0].hits.before) == 5


def test_methods_of_a_run_are_shown_as_they_were_measured(world: World) -> None:
    view = harness.show("page-203", ["sap", "docpruner"], run=world.run, store=world.stores, layers=True).view
    recorded = world.results()._run.files.read_result("plain", "docpruner").kept[0, :, 3]
    assert [len(cell.kept) for cell in view.rows[1]] == recorded.tolist()
    assert str(view.layers.window) == world.results()._run.calibration["window"]["window"]
    assert set(view.layers.signals) == {"indegree", "eos"}


@pytest.mark.slow
def test_the_same_page_is_the_same_bytes_as_png_and_svg_and_opens(world: World, tmp_path: Path) -> None:
    drawing = draw(world, query="q3", data_set="plain", layers=True, pruners=["sap", "kmeans", "hpc(codes=8)"])
    assert picture(drawing.view, "png") == drawing.picture("png")
    assert picture(drawing.view, "svg") == drawing.picture("svg")
    assert Image.open(drawing.save(tmp_path / "a.png")).size[0] > 500
    assert drawing.save(tmp_path / "deep" / "a.svg").read_text().startswith("<?xml")
    html = drawing.save(tmp_path / "a.html").read_text()
    assert not re.search(r'(src|href)="(?!data:|#)', html), "it needs nothing from elsewhere"
    with pytest.raises(PruneBoardError, match=r"end its name in \.png, \.svg or \.html"):
        drawing.save(tmp_path / "a.gif")


def test_in_the_figure_kept_patches_are_clear_and_dropped_ones_dark(world: World) -> None:
    """The panel of one method at one budget: the middle of a patch has the page's colour, or is dimmed."""
    view = draw(world, pruners=["ink"], budgets=[0.3]).view
    pixels = np.asarray(Image.open(io.BytesIO(picture(view, "png"))).convert("L")).astype(int)
    dark = pixels < 150
    # the page is 203 all over: where its colour is lies a page, the last of them is the method's
    page = np.abs(pixels - 203) < 4
    right = np.flatnonzero((page | dark).sum(0) > 60)
    left_edge = right[np.flatnonzero(np.diff(right) > 3)[-1] + 1]
    across = np.arange(left_edge, right[-1] + 1)
    down = np.flatnonzero((page | dark)[:, across].sum(1) > 0.8 * len(across))
    cell = view.rows[0][0]
    grid = view.canvas.boxes / np.array([*view.canvas.size, *view.canvas.size])
    for patch, (x0, y0, x1, y1) in enumerate(grid):
        x = int(across[0] + (x0 + x1) / 2 * len(across))
        y = int(down[0] + (y0 + y1) / 2 * len(down))
        assert (pixels[y, x] > 180) == (cell.kept.labels[patch] >= 0), patch


def test_a_notebook_shows_it_by_itself_and_twice_on_one_page(world: World) -> None:
    one, other = draw(world)._repr_html_(), draw(world, page="page-204")._repr_html_()
    assert "<!doctype" not in one
    assert "<script" not in one
    (mine,), (theirs,) = (set(re.findall(r'<image id="(\w+)"', text)) for text in (one, other))
    assert mine != theirs, "two outputs do not take each other's picture"
    assert draw(world)._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"page": "nope"}, r"there is no page 'nope'\. There are plain: page-200, page-201"),
        ({"data_set": "nope"}, "has no data set 'nope'; it has plain, tongues"),
        ({"pruners": ["sop"]}, "sop"),
        ({"pruners": ["prune_everything.py"]}, "prune_everything"),
        ({"budgets": [2.0]}, "budget"),
    ],
)
def test_mistakes_have_names(world: World, asked, message) -> None:
    with pytest.raises(PruneBoardError, match=message):
        draw(world, **asked)


def test_a_run_has_its_own_settings_budgets_and_methods(world: World) -> None:
    for more, message in (
        ({"backbone": "nano"}, "a run has its own backbone"),
        ({"budgets": [0.2]}, r"was not measured at a budget of 0\.2; its are 0\.1, 0\.3"),
        ({"pruners": ["kmean"]}, "did you mean kmeans"),
    ):
        with pytest.raises(PruneBoardError, match=message):
            harness.show("page-203", run=world.run, store=world.stores, **more)


def test_the_command_writes_what_it_is_asked_for(world: World, tmp_path: Path) -> None:
    out = [tmp_path / "a.png", tmp_path / "a.html"]
    options = ["page-203", "--run", str(world.run), "--store", str(world.stores), "--pruner", "sap"]
    result = CliRunner().invoke(app, ["show", *options, "--out", str(out[0]), "--out", str(out[1])])
    assert result.exit_code == 0, result.output
    assert all(path.stat().st_size > 1000 for path in out)
