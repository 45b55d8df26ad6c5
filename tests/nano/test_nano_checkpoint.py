"""The shipped checkpoint loads through colpali-engine as it is, and gives the figures its card tells."""

from __future__ import annotations

import harness.compat  # noqa: F401

import json

import pytest
import torch

from harness.minidocs.files import folder_of, read
from harness.minidocs.vocabulary import all_words
from harness.nano.card import FIGURES, measure
from harness.nano.checkpoint import FOLDER, GRID, load
from harness.nano.contrast import tokenize
from harness.nano.measure import encode_pages, encode_queries, maxsim_scores, ndcg_at_5


@pytest.fixture(scope="module")
def nano():
    return load()


@pytest.fixture(scope="module")
def slides():
    return read(folder_of("minidocs-v1", "slides"))


def test_it_is_small_and_has_its_card_and_log():
    assert (FOLDER / "model.safetensors").stat().st_size <= 8_000_000
    card = (FOLDER / "README.md").read_text()
    assert "do not speak for" in card
    rows = [json.loads(line) for line in (FOLDER / "training_log.jsonl").read_text().splitlines()]
    assert {row["stage"] for row in rows} == {"reading", "contrast"}


def test_colpali_engine_loads_it_without_help(slides):
    """No class, argument or patch of ours: what an outside user types."""
    from colpali_engine.models import ColPali, ColPaliProcessor

    model, info = ColPali.from_pretrained(FOLDER, output_loading_info=True)
    assert set(info["missing_keys"]) <= {"model.lm_head.weight"}
    assert not info["unexpected_keys"]
    assert not info["mismatched_keys"]
    processor = ColPaliProcessor.from_pretrained(FOLDER)
    batch = processor.process_images([slides.images[0]])
    assert int(processor.get_image_mask(batch).sum()) == GRID * GRID
    assert processor.get_n_patches((224, 224), model.model.model.vision_tower.config.patch_size) == (GRID, GRID)
    assert batch["input_ids"][0, -1] == processor.tokenizer.convert_tokens_to_ids("\n")


def test_every_word_is_one_token(nano):
    _, processor = nano
    ids = processor.tokenizer.convert_tokens_to_ids(list(all_words()))
    assert processor.tokenizer.unk_token_id not in ids
    assert all(len(processor.tokenizer.tokenize(word)) == 1 for word in all_words())


def test_vectors_have_unit_length_and_do_not_depend_on_the_batch(nano, slides):
    model, processor = nano
    texts = [row["query"] for row in slides.queries[:8]]
    together = encode_queries(model, processor, texts)
    alone = [encode_queries(model, processor, [text])[0] for text in texts]
    for one, other in zip(together, alone, strict=True):
        torch.testing.assert_close(one, other, atol=2e-5, rtol=0)
        torch.testing.assert_close(one.norm(dim=1), torch.ones(len(one)))


def test_queries_without_token_types_are_read_causally_and_differ(nano, slides):
    """The trap the query template avoids; if this fails, transformers changed and the zeros may go."""
    model, processor = nano
    batch = tokenize(processor, [slides.queries[0]["query"], slides.queries[1]["query"] + " in kenya in 2014"])
    with torch.inference_mode():
        right = model(**batch)
        batch.pop("token_type_ids")
        assert (model(**batch) - right)[0].abs().max() > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("name", ["reports", "slides"])
def test_the_production_loader_gives_the_card_s_figures(name):
    """The harness' own way from `--backbone nano` to vectors, instead of this package's."""
    from harness.backbones import registry

    backbone, content = registry.load("nano"), read(folder_of("minidocs-v1", name))
    images = list(content.images.values())
    pages = [page for at in range(0, len(images), 16) for page in backbone.encode_pages(images[at : at + 16])]
    queries = list(backbone.encode_queries([row["query"] for row in content.queries]))
    ndcg = ndcg_at_5(maxsim_scores(queries, torch.stack([page.vectors for page in pages])), content.qrels)
    told = json.loads((FOLDER / FIGURES).read_text())["ndcg_at_5"]["minidocs-v1"][name]
    assert sum(ndcg.values()) / len(ndcg) == pytest.approx(told, abs=5e-4)


@pytest.mark.slow
def test_the_card_s_figures_to_the_third_decimal():
    told = json.loads((FOLDER / FIGURES).read_text())
    measured = measure()
    assert told["ndcg_at_5"]["minidocs-v1"]["mean"] >= 0.9
    for part in ("ndcg_at_5_by_group", "parameters", "weights_bytes"):
        assert measured[part] == pytest.approx(told[part], abs=5e-4)
    for benchmark, members in told["ndcg_at_5"].items():
        assert measured["ndcg_at_5"][benchmark] == pytest.approx(members, abs=5e-4)
        for name, value in members.items():
            assert f"| {benchmark} | {name} | {value:.3f} |" in (FOLDER / "README.md").read_text()


def test_a_query_finds_its_page_by_what_is_drawn_on_it(nano, slides):
    """Negative control: with the pages' contents blanked, retrieval is lost."""
    model, processor = nano
    images = [slides.images[place] for place in range(48)]
    rows = [row for row in slides.queries if next(iter(slides.qrels[row["query-id"]])) < 48][:24]
    queries = encode_queries(model, processor, [row["query"] for row in rows])
    qrels = {place: slides.qrels[row["query-id"]] for place, row in enumerate(rows)}
    seen = ndcg_at_5(maxsim_scores(queries, encode_pages(model, processor, images)), qrels)
    blank = [image.convert("RGB").point(lambda _: 255) for image in images]
    unseen = ndcg_at_5(maxsim_scores(queries, encode_pages(model, processor, blank)), qrels)
    assert sum(seen.values()) / len(seen) > 0.8
    assert sum(unseen.values()) / len(unseen) < 0.2
