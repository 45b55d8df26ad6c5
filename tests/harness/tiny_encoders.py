"""Tiny text encoders with random weights and MiniLM's tokenizer, plain or as ColBERT checkpoints."""

from __future__ import annotations

import harness.compat  # noqa: F401

import json
import shutil

import torch
from safetensors.torch import load_file, save_file

from harness.backbones import minilm


def save_encoder(config, folder):
    from transformers import AutoModel

    torch.manual_seed(0)
    AutoModel.from_config(config).save_pretrained(folder)
    for file in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
        shutil.copy(minilm.packaged_copy() / file, folder)
    return folder


def bert_config(**changes):
    from transformers import BertConfig

    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    return BertConfig(**{**sizes, "vocab_size": 30522, **changes})


def colbert_folder(folder, layout):
    """A tiny encoder as a ColBERT checkpoint, in Stanford's or in PyLate's files."""
    weight = torch.randn(16, 32, generator=torch.Generator().manual_seed(1))
    if layout == "stanford":
        weights = {f"bert.{name}": value for name, value in load_file(folder / "model.safetensors").items()}
        save_file({**weights, "linear.weight": weight}, folder / "model.safetensors", metadata={"format": "pt"})
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "architectures": ["HF_ColBERT"]}))
        (folder / "artifact.metadata").write_text(
            json.dumps({"query_token_id": "[unused0]", "doc_token_id": "[unused1]", "query_maxlen": 24, "dim": 16})
        )
        return folder
    (folder / "1_Dense").mkdir()
    save_file({"linear.weight": weight}, folder / "1_Dense" / "model.safetensors")
    dense = {"in_features": 32, "out_features": 16, "bias": False}
    dense["activation_function"] = "torch.nn.modules.linear.Identity"
    (folder / "1_Dense" / "config.json").write_text(json.dumps(dense))
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Dense", "type": "pylate.models.Dense.Dense"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    settings = {"query_prefix": "[unused0]", "document_prefix": "[unused1]", "query_length": 24}
    settings |= {"attend_to_expansion_tokens": True, "skiplist_words": [",", "."]}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    return folder
