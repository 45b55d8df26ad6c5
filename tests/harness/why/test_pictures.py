"""Pictures in bytes: what the gallery paints, and how large an explanation may become."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from harness.why import gallery
from harness.why.canvas import on_grid
from harness.why.html import MOST_BYTES, explanation_page
from harness.why.kept_vectors import MERGED, SUBSET, KeptVectors
from harness.why.shapes import areas
from tests.harness.why.world import World


def test_kept_patches_keep_their_colour_and_dropped_ones_are_dark() -> None:
    canvas = on_grid(Image.new("RGB", (60, 40), "white"), (2, 3), 100)
    kept = KeptVectors(torch.zeros(2, 4), np.array([-1, 0, -1, -1, -1, 1]), SUBSET)
    pixels = np.asarray(gallery.painted(canvas, kept).convert("L"))
    middles = [pixels[10 + 20 * (i // 3), 10 + 20 * (i % 3)] for i in range(6)]
    assert [value == 255 for value in middles] == [False, True, False, False, False, True]
    assert pixels[0, 19] < 150 < pixels[0, 20], "to the pixel"


def test_the_patches_of_a_merged_vector_share_a_colour_that_no_other_has() -> None:
    canvas = on_grid(Image.new("RGB", (60, 40), "white"), (2, 3), 100)
    kept = KeptVectors(torch.zeros(3, 4), np.array([0, 0, 1, 1, 2, -1]), MERGED)
    image = gallery.painted(canvas, kept)
    colours = [image.getpixel((10 + 20 * (i % 3), 10 + 20 * (i // 3))) for i in range(6)]
    assert colours[0] == colours[1] != colours[2] == colours[3]
    assert colours[4] == (255, 255, 255), "a patch by itself is clear"
    assert [area.told for area in areas(canvas, kept) if area.told] == ["one vector of 2 patches"] * 2


@pytest.mark.slow
def test_an_explanation_of_twenty_queries_stays_below_its_bound(world: World) -> None:
    found = world.results().explain("sap", budget=0.1, store=world.stores).found
    draw = np.random.default_rng(0)

    case = next(case for case in found.cases if len(case.panels) == 2)

    def full_of_noise(panel):
        noise = Image.fromarray(draw.integers(0, 255, (560, 400, 3), np.uint8))  # nothing is harder to compress
        boxes = on_grid(noise, (4, len(panel.view.canvas.boxes) // 4), 560).boxes
        return replace(panel, view=replace(panel.view, canvas=replace(panel.view.canvas, image=noise, boxes=boxes)))

    cases = [replace(case, panels=[full_of_noise(panel) for panel in case.panels]) for _ in range(20)]
    assert len(explanation_page(replace(found, cases=cases))) <= MOST_BYTES


@pytest.mark.slow
def test_the_gallery_shows_every_built_in_method_and_is_made_once(tmp_path: Path, monkeypatch) -> None:
    found = gallery.gallery(["sap", "kmeans", "oracle", "nobody's"], tmp_path)
    assert list(found) == ["sap", "kmeans", "oracle"]
    for pictures in found.values():
        assert [picture.budget for picture in pictures] == [0.05, 0.1, 0.2]
        assert all(len(picture.data) < 20_000 for picture in pictures)
    assert found["sap"][1].told == "three pages under sap at 10 %: 20 of 196, 20 of 196, 20 of 196 vectors"
    gallery._all_pictures.cache_clear()
    monkeypatch.setattr(gallery, "_made", None)
    again = gallery.gallery(["sap"], tmp_path)
    assert [picture.data for picture in again["sap"]] == [picture.data for picture in found["sap"]]
    assert gallery.hero_picture(tmp_path).startswith(b"\x89PNG")
