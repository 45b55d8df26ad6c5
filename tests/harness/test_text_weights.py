"""Every weight of a text encoder and of its projection comes from a file, or loading stops."""

from __future__ import annotations

import harness.compat  # noqa: F401

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from harness.backbones import registry
from harness.backbones.checkpoint import CheckpointError
from harness.backbones.contract import Options
from tests.harness.published_layouts import in_shards, without
from tests.harness.tiny_encoders import bert_config, colbert_folder, save_encoder


def load(folder):
    return registry.load(f"minilm={folder}", Options(device="cpu"))


@pytest.mark.parametrize("layout", ["plain", "stanford", "pylate"])
def test_a_hole_in_a_text_encoder_is_an_error(tmp_path, layout):
    folder = save_encoder(bert_config(), tmp_path / "whole")
    folder = folder if layout == "plain" else colbert_folder(folder, layout)
    broken, _ = without(folder, tmp_path / "broken", r"layer\.1\.attention\.self\.query\.weight")
    with pytest.raises(CheckpointError, match=r"layer\.1\.attention\.self\.query\.weight; they would be random"):
        _ = load(broken).model
    headless, _ = without(folder, tmp_path / "headless", r"pooler")
    assert load(headless).model is not None, "token vectors need no pooler"


@pytest.mark.parametrize("layout", ["plain", "stanford"])
def test_a_layer_that_a_text_encoders_config_does_not_know_is_an_error(tmp_path, layout):
    folder = save_encoder(bert_config(num_hidden_layers=3), tmp_path)
    folder = folder if layout == "plain" else colbert_folder(folder, layout)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 2}))
    with pytest.raises(CheckpointError, match=r"no place for: .*layer\.2\.attention"):
        _ = load(folder).model


def test_heads_of_other_tasks_are_left_aside(tmp_path):
    """BERT as it is published, with the head that it was trained with."""
    folder = save_encoder(bert_config(), tmp_path)
    before = load(folder).encode_queries(["data"])[0]
    weights = {f"bert.{name}": value for name, value in load_file(folder / "model.safetensors").items()}
    weights |= {"cls.predictions.bias": torch.zeros(30522), "bert.embeddings.position_ids": torch.arange(512)[None]}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert torch.equal(load(folder).encode_queries(["data"])[0], before)


def test_a_colbert_checkpoint_without_its_projection_is_refused(tmp_path):
    """Without it vectors would be hidden states of another width, and nothing would say so."""
    folder = colbert_folder(save_encoder(bert_config(), tmp_path), "pylate")
    dense = folder / "1_Dense" / "model.safetensors"
    weight = load_file(dense)["linear.weight"]
    save_file({"linear.weight": weight, "linear.bias": torch.ones(16)}, dense)
    with pytest.raises(CheckpointError, match=r"linear\.bias"):
        load(folder)
    save_file({"linear.other": weight}, dense)
    with pytest.raises(CheckpointError, match=r"no linear\.weight"):
        load(folder)
    (folder / "modules.json").unlink()
    with pytest.raises(CheckpointError, match=r"modules\.json"):
        load(folder)


def test_a_projection_is_found_among_shards(tmp_path):
    folder = colbert_folder(save_encoder(bert_config(), tmp_path / "whole"), "stanford")
    whole = load(folder)
    shards = load(in_shards(folder, tmp_path / "shards"))
    assert torch.equal(shards.encode_queries(["data"])[0], whole.encode_queries(["data"])[0])


def test_an_adapter_of_a_text_encoder_is_refused_in_words(tmp_path):
    base = save_encoder(bert_config(), tmp_path / "base")
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    save_file({"base_model.model.x.lora_A.weight": torch.zeros(1, 1)}, adapter / "adapter_model.safetensors")
    (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(base)}))
    (adapter / "tokenizer.json").write_text((base / "tokenizer.json").read_text())
    with pytest.raises(CheckpointError, match=r"is a LoRA adapter.*merge it"):
        load(adapter)
