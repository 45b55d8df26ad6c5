"""Backbones give what colpali-engine gives, whatever the batch, and say what they are."""

from __future__ import annotations

import harness.compat  # noqa: F401

import pytest
import torch

from harness.backbones import colpali, colqwen2, registry
from harness.backbones.checkpoint import CheckpointError, find_checkpoint, missing_files
from harness.backbones.colqwen_omni import ColQwenOmniBackbone
from harness.backbones.contract import Options
from harness.backbones.engine_weights import load_engine_model
from pruners.core.errors import PruneBoardError
from tests.harness import tiny_checkpoints as tiny
from tests.harness.page_images import page_image

BACKBONES = ["colpali", "colqwen2", "colqwen2.5", "colsmol", "jina-v4"]
BACKBONES += ["colqwen3", "colqwen3.5", "colgemma3", "colmodernvbert", "colqwen-omni"]
QUERIES = ["revenue", "what is the total revenue of the energy report in 2021?", "renewable electricity production"]
PAGES = [page_image(size, seed) for seed, size in enumerate([(200, 260), (300, 150), (120, 120), (260, 260)])]
ROUNDING = 2e-5
OF_RECURRENCE = 5e-4  # ColQwen3.5's recurrent layers work in chunks of the padded length: rounding adds up otherwise


@pytest.mark.parametrize("name", BACKBONES)
def test_a_page_does_not_depend_on_its_batch(tiny_backbone, name):
    backbone, rounding = tiny_backbone(name), OF_RECURRENCE if name == "colqwen3.5" else ROUNDING
    together = backbone.encode_pages(PAGES)
    for page, alone in zip(together, (backbone.encode_pages([image])[0] for image in PAGES), strict=True):
        assert page.grid == alone.grid
        torch.testing.assert_close(page.vectors, alone.vectors, atol=rounding, rtol=0)
        torch.testing.assert_close(page.prompt, alone.prompt, atol=rounding, rtol=0)
        for signal in backbone.card.signals:
            torch.testing.assert_close(page.signals[signal], alone.signals[signal], atol=rounding, rtol=rounding)


@pytest.mark.parametrize("name", BACKBONES)
def test_a_query_does_not_depend_on_its_batch(tiny_backbone, name):
    backbone = tiny_backbone(name)
    for query, alone in zip(
        backbone.encode_queries(QUERIES), (backbone.encode_queries([q])[0] for q in QUERIES), strict=True
    ):
        torch.testing.assert_close(query, alone, atol=ROUNDING, rtol=0)


def test_colpali_queries_need_their_token_types(tiny_backbone):
    """Negative control of the test above: as the engine calls it, a padded query gets other vectors."""
    backbone = tiny_backbone("colpali")
    batch = backbone.processor.process_texts([backbone.query_text(q) for q in QUERIES])
    single = backbone.processor.process_texts([backbone.query_text(QUERIES[0])])
    with torch.inference_mode():
        beside_longer = backbone.model(**batch)[0][batch["attention_mask"][0].bool()]
        alone = backbone.model(**single)[0]
    assert (beside_longer - alone).abs().max() > 0.05


@pytest.mark.parametrize("name", [name for name in BACKBONES if name != "jina-v4"])
def test_vectors_equal_the_engines_own_forward(checkpoints, tiny_backbone, name):
    """Same files, the engine's class as its users load it: bit-identical pages; queries where it masks rightly."""
    from colpali_engine import models

    engine_class = {
        "colpali": models.ColPali,
        "colqwen2": models.ColQwen2,
        "colqwen2.5": models.ColQwen2_5,
        "colsmol": models.ColIdefics3,
        "colqwen3": models.ColQwen3,
        "colqwen3.5": models.ColQwen3_5,
        "colgemma3": models.ColGemma3,
        "colmodernvbert": models.ColModernVBert,
        "colqwen-omni": ColQwenOmniBackbone.classes()[0],  # the engine's own cannot be built
    }[name]
    engine = engine_class.from_pretrained(str(checkpoints(name)), dtype=torch.float32).eval()
    if name == "colpali":  # the head is not in the checkpoint; the engine leaves it on the meta device
        engine.model.lm_head = torch.nn.Linear(engine.config.text_config.hidden_size, 7, bias=False)
    backbone = tiny_backbone(name)
    pages = backbone.encode_pages(PAGES)
    inputs = backbone.processor.process_images(PAGES)
    inputs.pop("labels", None)
    queries = backbone.processor.process_texts([backbone.query_text(QUERIES[0])])
    visual = backbone.visual_tokens(inputs)
    with torch.inference_mode():
        vectors, query = engine(**inputs), engine(**queries)
    for row, page in enumerate(pages):
        assert torch.equal(page.vectors, vectors[row][visual[row]])
    torch.testing.assert_close(backbone.encode_queries(QUERIES[:1])[0], query[0], atol=ROUNDING, rtol=0)


def test_query_template_is_mtebs(tiny_backbone):
    assert tiny_backbone("colpali").card.query_template == "Query: {query}" + "<pad>" * 10
    assert tiny_backbone("colqwen2").card.query_template == "Query: {query}" + "<|endoftext|>" * 10
    assert tiny_backbone("colsmol").card.query_template == "Query: {query}" + "<end_of_utterance>" * 10
    assert tiny_backbone("jina-v4").card.query_template == "Query: {query}"


def test_a_card_states_the_checkpoint(tiny_backbone):
    card = tiny_backbone("colqwen2").card
    assert (card.layers, card.heads, card.dim, card.dtype) == (4, 4, 128, "float32")
    assert "endoftext" in card.eos_token
    for name in ("colpali", "jina-v4"):
        assert "Ċ" in tiny_backbone(name).card.eos_token  # the byte-level form of a line feed


def test_max_visual_tokens(checkpoints):
    small = colqwen2.load_colqwen2(str(checkpoints("colqwen2")), Options(device="cpu", max_visual_tokens=20))
    (page,) = small.encode_pages([page_image((800, 600))])
    assert 4 <= len(page.vectors) <= 20
    assert page.grid[0] * page.grid[1] == len(page.vectors)
    with pytest.raises(PruneBoardError, match="always makes 16 visual tokens"):
        colpali.load(str(checkpoints("colpali")), Options(device="cpu", max_visual_tokens=10))


def test_colpali_takes_sizes_from_the_checkpoint(tmp_path):
    folder = tiny.save_colpali(tmp_path / "other", image_size=84, dim=48)
    backbone = colpali.load(str(folder), Options(device="cpu"))
    (page,) = backbone.encode_pages([page_image((100, 100))])
    assert backbone.card.dim == 48
    assert page.vectors.shape == (36, 48)
    assert page.grid == (6, 6)


@pytest.mark.parametrize("name", [name for name in BACKBONES if name not in ("colsmol", "colmodernvbert")])
def test_ink_is_high_on_text_and_zero_on_paper(tiny_backbone, name):
    image = page_image((196, 196)).crop((0, 0, 196, 196))
    image.paste("white", (98, 0, 196, 196))
    (page,) = tiny_backbone(name).encode_pages([image])
    ink = page.signals["ink"].reshape(page.grid)
    right = ink[:, page.grid[1] // 2 + 1 :]
    assert right.max() < 1e-6
    assert ink[0, 0] > 0.05


def test_ink_is_the_deviation_of_a_patch_by_hand(tiny_backbone):
    """A 14-pixel patch, half black and half white: luma 0 and 1, standard deviation one half."""
    from PIL import Image

    image = Image.new("RGB", (56, 56), "white")
    image.paste("black", (0, 0, 7, 14))
    (page,) = tiny_backbone("colpali").encode_pages([image])
    assert page.signals["ink"][0, 0] == pytest.approx(0.5, abs=1e-3)
    assert page.signals["ink"][0, 1:].max() < 1e-6


def test_missing_checkpoint_files_are_named(checkpoints, tmp_path):
    for file in checkpoints("colpali").iterdir():
        if file.name != "tokenizer.json":
            (tmp_path / file.name).symlink_to(file)
    assert missing_files(tmp_path) == ["tokenizer.json"]
    with pytest.raises(CheckpointError, match=r"lacks tokenizer\.json.*save_pretrained.*--backbone nano"):
        find_checkpoint(str(tmp_path), None)


def test_absent_checkpoint_says_how_to_fetch_it(tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(CheckpointError) as caught:
        find_checkpoint("vidore/colpali-v1.3", "abc")
    text = str(caught.value)
    for part in ("model.safetensors", "tokenizer.json", "hf download vidore/colpali-v1.3 --revision abc", "nano"):
        assert part in text


def test_a_checkpoint_of_another_class_is_refused(checkpoints):
    with pytest.raises(CheckpointError, match="would be random"):
        load_engine_model(
            colqwen2.ColQwen25Backbone.classes()[0], find_checkpoint(str(checkpoints("colqwen2")), None), torch.float32
        )


def test_split_pages_have_no_grid_and_an_ink_for_every_tile(tiny_backbone):
    """Landscape, 3 tiles wide and 2 high, text at the left: the other tiles are blank, the thumbnail is not."""
    backbone = tiny_backbone("colsmol")
    image = page_image((168, 112), seed=1)
    image.paste("white", (56, 0, 168, 112))
    (page,) = backbone.encode_pages([image])
    assert page.grid is None
    assert len(page.vectors) == (3 * 2 + 1) * 4
    ink = page.signals["ink"].reshape(7, 4)
    assert (ink.amax(1) > 0.02).tolist() == [True, False, False, True, False, False, True]


def test_fewer_tiles_for_fewer_tokens(checkpoints):
    small = registry.load(f"colsmol={checkpoints('colsmol')}", Options(device="cpu", max_visual_tokens=20))
    (page,) = small.encode_pages([page_image((800, 800))])
    assert len(page.vectors) == (2 * 2 + 1) * 4
    with pytest.raises(PruneBoardError, match="at least 8 visual tokens"):
        registry.load(f"colsmol={checkpoints('colsmol')}", Options(device="cpu", max_visual_tokens=7))
