"""Patches lie where the backbone cut them: the ink that it measured in each is the ink of the box that is drawn."""

from __future__ import annotations

import harness.compat  # noqa: F401

import numpy as np
import pytest
from PIL import Image, ImageDraw
from scipy.stats import spearmanr

from harness.backbones import registry
from harness.backbones.contract import Options
from harness.benchmarks.data_set import DataSet
from harness.why.pages import Pages
from harness.why.tokens import page_spans, query_tokens, runs
from pruners import PruneBoardError

SIZES = [(420, 300), (300, 640), (224, 224)]


def spotted(size: tuple[int, int], seed: int) -> Image.Image:
    """A page with black squares of many sizes, at places drawn by chance."""
    image, draw = Image.new("RGB", size, "white"), np.random.default_rng(seed)
    for _ in range(12):
        side = int(draw.integers(8, 70))
        x, y = (int(draw.integers(0, edge)) for edge in size)
        ImageDraw.Draw(image).rectangle((x, y, x + side, y + side), fill="black")
    return image


def pages_of(backbone, images: list[Image.Image]) -> Pages:
    ids = tuple(f"p{i}" for i in range(len(images)))
    return Pages(DataSet("drawn", ids, lambda i: images[i], {}, {}), None, lambda: backbone)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["colpali", "colqwen2", "colqwen2.5", "colsmol"])
def test_the_ink_of_every_box_is_the_ink_of_its_patch(tiny_backbone, name: str) -> None:
    images = [spotted(size, seed) for seed, size in enumerate(SIZES)]
    pages = pages_of(tiny_backbone(name), images)
    for index in range(len(images)):
        page = pages.page(index)
        canvas = pages.canvas(index, page, 900)
        grey = np.asarray(canvas.image.convert("L")) / 255
        boxes = canvas.boxes.round().astype(int)
        drawn = [grey[top:bottom, left:right].std() for left, top, right, bottom in boxes]
        assert len(drawn) == len(page)
        measured = page.signals["ink"][0].numpy()
        assert spearmanr(drawn, measured).statistic > 0.9, (name, index)
        shifted = np.roll(drawn, 1)
        assert spearmanr(shifted, measured).statistic < 0.8, "a shifted grid would be seen"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["colpali", "colqwen2", "colsmol"])
def test_there_is_a_token_for_every_vector_of_a_query(tiny_backbone, name: str) -> None:
    backbone = tiny_backbone(name)
    text = "what is the total revenue of the energy report?"
    (vectors,) = backbone.encode_queries([text])
    tokens = query_tokens(backbone, text, len(vectors))
    assert len(tokens) == len(vectors)
    written = "".join((" " if token.begins else "") + token.text for token in tokens if not token.template)
    assert written.replace(" ", "") == text.replace(" ", ""), "the query's own words, and none of its template"
    assert sum(count for *_, count in runs([(token, 0.0) for token in tokens])) == len(tokens)


@pytest.mark.slow
def test_tokens_of_a_page_lie_where_its_text_has_them() -> None:
    backbone = registry.load("minilm", Options(device="cpu"))
    text = " ".join(f"Line {i} says that vector {i * 7} holds {i % 13} values.\n" for i in range(90))
    (page,) = backbone.encode_pages([text])
    spans = page_spans(backbone, text, len(page.vectors))
    ids = backbone.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    words = backbone.tokenizer.convert_ids_to_tokens(ids)
    assert len(spans) == len(words) > 512, "in several windows"
    assert [text[a:b].lower() for a, b in spans] == [word.removeprefix("##") for word in words]
    with pytest.raises(PruneBoardError, match="it is not what was read"):
        page_spans(backbone, text, 5)
