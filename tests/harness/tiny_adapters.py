"""Tiny checkpoints in the published form of adapters: LoRA on a base model, and Jina v4's one file for three tasks."""

from __future__ import annotations

import harness.compat  # noqa: F401

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from tests.harness.tiny_checkpoints import qwen_config, qwen_processor, randomise


def save_lora(base: Path, folder: Path, *, old_names: bool = False, seed: int = 5) -> Path:
    """A ColQwen2 checkpoint in its published form: a LoRA adapter on a base model, processor beside the adapter.

    `old_names`: layer names as they were when the published adapters were trained.
    """
    from colpali_engine.models import ColQwen2, ColQwen2Processor
    from peft import LoraConfig, get_peft_model

    model = ColQwen2.from_pretrained(str(base), dtype=torch.float32)
    targets = r"(.*language_model.*(down_proj|gate_proj|up_proj|k_proj|q_proj|v_proj|o_proj).*$|.*custom_text_proj.*$)"
    model = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules=targets))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.copy_(0.2 * torch.randn(parameter.shape, generator=generator))
    model.save_pretrained(folder)
    config = json.loads((folder / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = str(base)
    if old_names:
        weights = folder / "adapter_model.safetensors"
        tensors = {
            k.replace("model.language_model.layers", "model.model.layers"): v for k, v in load_file(weights).items()
        }
        save_file(tensors, weights)
        config["target_modules"] = targets.replace("language_model", "(model)")
    (folder / "adapter_config.json").write_text(json.dumps(config))
    ColQwen2Processor.from_pretrained(str(base)).save_pretrained(folder)
    return folder


def save_jina_v4(folder: Path, *, seed: int = 0, old_names: bool = False) -> Path:
    """Jina v4's files: Qwen2.5-VL weights with two projectors, and one adapter file with three tasks."""
    from colpali_engine.models import ColQwen2_5, ColQwen2_5_Processor

    processor = qwen_processor(ColQwen2_5_Processor)
    config = qwen_config(processor, generation="2.5")
    state = randomise(ColQwen2_5(config), seed).state_dict()
    decoder = "model." if old_names else "model.language_model."
    vision = "visual." if old_names else "model.visual."
    names = {"language_model.": decoder, "visual.": vision, "custom_text_proj.": "multi_vector_projector."}
    saved = {}
    for key, tensor in state.items():
        (prefix,) = [p for p in names if key.startswith(p)]
        saved[names[prefix] + key.removeprefix(prefix)] = tensor.contiguous()
    saved["lm_head.weight"] = torch.zeros(4, 64)
    saved["single_vector_projector.weight"] = torch.zeros(4, 64)
    generator = torch.Generator().manual_seed(seed + 1)
    adapters = {}
    for key, tensor in saved.items():
        module = key.removesuffix(".weight")
        if (module.endswith("_proj") and "visual" not in module) or module == "multi_vector_projector":
            for task in ("retrieval", "text-matching", "code"):
                a = torch.randn(4, tensor.shape[1], generator=generator) * 0.1
                b = torch.randn(tensor.shape[0], 4, generator=generator) * 0.1
                adapters[f"base_model.model.{module}.lora_A.{task}.weight"] = a
                adapters[f"base_model.model.{module}.lora_B.{task}.weight"] = b
    (folder / "adapters").mkdir(parents=True)
    save_file(saved, folder / "model.safetensors")
    save_file(adapters, folder / "adapters" / "adapter_model.safetensors")
    (folder / "adapters" / "adapter_config.json").write_text(json.dumps({"r": 4, "lora_alpha": 8}))
    fields = {**config.to_dict(), "architectures": ["JinaEmbeddingsV4Model"], "auto_map": {"AutoModel": "remote.code"}}
    (folder / "config.json").write_text(json.dumps(fields))
    processor.save_pretrained(folder)
    return folder
