"""Training data and steps depend on seed and step alone; an interrupted run ends where an uninterrupted one does."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file

from harness.minidocs.vocabulary import CHART_KINDS, COLOURS, CONCEPTS, COUNTRIES, FRENCH, SYNONYMS, YEARS, drawn_words
from harness.nano.batches import BLANK, CLASSES, contrast_batch, reading_batch
from harness.nano.checkpoint import build_model, build_processor
from harness.nano.contrast import SILENT, cosines, embed_pages, embed_tokens, maxsim, silence_loss, tokenize
from harness.nano.measure import encode_pages, ndcg_at_5
from harness.nano.reading import build_head, normalise, see, warm_start
from harness.nano.training import TrainingSettings, train


def test_a_step_is_always_the_same_batch():
    one, other = contrast_batch(4, 7), contrast_batch(4, 7)
    assert torch.equal(one.pages.pixels, other.pages.pixels)
    assert one.queries == other.queries
    assert not torch.equal(one.pages.pixels, contrast_batch(4, 8).pages.pixels)


def test_labels_name_the_words_and_blank_patches_are_blank():
    batch = reading_batch(4, 0)
    patches = batch.pixels.unfold(2, 16, 16).unfold(3, 16, 16).amin(dim=(1, 4, 5)).flatten(1)
    assert torch.equal(batch.labels == BLANK, patches == 255)
    named = {CLASSES[label] for label in batch.labels.unique().tolist() if 0 <= label < len(drawn_words())}
    assert len(named) > 40


def test_every_training_query_has_its_page_and_no_other():
    batch = contrast_batch(4, 3)
    assert len(batch.queries) == len(batch.gold)
    assert int(batch.gold.max()) < len(batch.pages.pixels)


def test_the_short_way_through_the_model_is_colpali_s_forward():
    """Training skips the vocabulary logits; its vectors must be those of the class that is shipped."""
    model, processor = build_model(1).eval(), build_processor()
    batch = reading_batch(4, 1)
    prompt = processor.tokenizer("<bos><bos>Describe the image.\n", return_tensors="pt")["input_ids"]
    from torchvision.transforms.functional import to_pil_image

    images = [to_pil_image(page) for page in batch.pixels[:2]]
    torch.testing.assert_close(normalise(batch.pixels[:2]), processor.process_images(images)["pixel_values"])
    with torch.inference_mode():
        pages = embed_pages(model, see(model, batch)[:2], prompt)
        torch.testing.assert_close(pages, encode_pages(model, processor, images), atol=1e-5, rtol=1e-4)
        tokens = tokenize(processor, ["which page covers wheat", "wheat and soil in kenya 2014"])
        ours = embed_tokens(model, model.get_input_embeddings()(tokens["input_ids"]), tokens["attention_mask"])
        theirs = model(**tokens)
        torch.testing.assert_close(ours * tokens["attention_mask"].unsqueeze(-1), theirs, atol=1e-5, rtol=1e-4)


def test_maxsim_of_a_batch_is_the_mean_of_best_cosines():
    queries, pages = torch.randn(2, 3, 128), torch.randn(4, 5, 128)
    mask = torch.tensor([[1, 1, 1], [1, 0, 0]])
    similarity, owner = cosines(queries, mask, pages)
    scores = maxsim(similarity.amax(-1), owner)
    by_hand = torch.stack([(queries[0, i] @ pages[2].T).max() for i in range(3)]).mean()
    assert float(scores[0, 2]) == pytest.approx(float(by_hand), rel=1e-5)
    assert float(scores[1, 3]) == pytest.approx(float((queries[1, 0] @ pages[3].T).max()), rel=1e-5)


def test_silence_is_broken_by_one_patch_that_a_silent_token_matches():
    similarity = torch.zeros(2, 1, 3)
    similarity[1, 0, 2] = 0.9
    assert float(silence_loss(similarity, torch.tensor([True, False]))) == 0
    assert float(silence_loss(similarity, torch.tensor([False, True]))) == pytest.approx(0.81)


def test_no_word_that_a_query_asks_for_is_silent():
    asked = {*CONCEPTS, *SYNONYMS.values(), *COUNTRIES, *YEARS, *COLOURS, *CHART_KINDS, *FRENCH.values()}
    assert not SILENT & {word.lower() for word in asked}


def test_after_the_warm_start_a_translation_begins_at_its_concept():
    model, tokenizer = build_model(1), build_processor().tokenizer
    warm_start(model, build_head())
    row = model.get_input_embeddings().weight
    ids = tokenizer.convert_tokens_to_ids(["wheat", "blé", "cereal", "soil"])
    assert torch.equal(row[ids[0]], row[ids[1]])
    assert torch.equal(row[ids[0]], row[ids[2]])
    assert not torch.equal(row[ids[0]], row[ids[3]])


def test_ndcg_is_trec_eval_s():
    """Gold at rank 2 of a binary query: 1/log2(3). Grades 2 and 1 in swapped order: linear gain."""
    scores = torch.tensor([[0.9, 0.8, 0.1], [0.5, 0.9, 0.1]])
    ndcg = ndcg_at_5(scores, {0: {1: 1}, 1: {0: 2, 1: 1}})
    log3 = torch.log2(torch.tensor(3.0)).item()
    assert ndcg[0] == pytest.approx(1 / log3)
    assert ndcg[1] == pytest.approx((1 + 2 / log3) / (2 + 1 / log3))


@pytest.mark.slow
def test_an_interrupted_run_ends_with_the_same_weights(tmp_path, monkeypatch):
    settings = TrainingSettings(reading_steps=3, contrast_steps=3, warmup=1, save_every=1)
    train(settings, tmp_path / "whole", tmp_path / "whole-base", tmp_path / "whole-checkpoint")

    from harness.nano import contrast

    calls = 0
    real = contrast.contrast_loss

    def dies_in_its_second_step(*args):
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(contrast, "contrast_loss", dies_in_its_second_step)
    with pytest.raises(KeyboardInterrupt):
        train(settings, tmp_path / "halved", tmp_path / "halved-base", tmp_path / "halved-checkpoint")
    monkeypatch.setattr(contrast, "contrast_loss", real)
    train(settings, tmp_path / "halved", tmp_path / "halved-base", tmp_path / "halved-checkpoint")

    for kind in ("base", "checkpoint"):
        one, other = (tmp_path / f"{name}-{kind}" / "model.safetensors" for name in ("whole", "halved"))
        assert one.read_bytes() == other.read_bytes(), kind
    base, final = (load_file(tmp_path / f"whole-{kind}" / "model.safetensors") for kind in ("base", "checkpoint"))
    assert not torch.equal(*(part["model.language_model.model.layers.0.mlp.up_proj.weight"] for part in (base, final)))
    steps = [json.loads(line)["step"] for line in (tmp_path / "halved" / "log.jsonl").read_text().splitlines()]
    assert steps[-1] == 3


@pytest.mark.slow
def test_a_run_for_the_base_alone_ends_before_the_first_contrast_step(tmp_path):
    settings = TrainingSettings(reading_steps=2, contrast_steps=3, warmup=1, save_every=1)
    train(settings, tmp_path / "run", tmp_path / "base", ship_to=None)
    assert (tmp_path / "base" / "model.safetensors").is_file()
    rows = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert {row["step"] for row in rows if row["stage"] == "contrast"} == {0}
