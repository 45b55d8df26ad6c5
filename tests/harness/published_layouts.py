"""Tiny checkpoints laid out as the published ones are: names of layers, config, processor files and shards of 2024.

Every function takes a checkpoint in today's layout and writes the same weights in another folder, so that a test can
ask for the same vectors from both.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

LAYERS = "down_proj|gate_proj|up_proj|k_proj|q_proj|v_proj|o_proj"
COLPALI_TARGETS = rf"(.*(language_model).*({LAYERS}).*$|.*(custom_text_proj).*$)"
COLQWEN_TARGETS = rf"(.*(model).*({LAYERS}).*$|.*(custom_text_proj).*$)"
"""`target_modules` of the published adapters, word for word."""


def published_colpali_base(today: Path, folder: Path) -> Path:
    """colpaligemma-3b-pt-448-base: `model.language_model.model.…`, `model.vision_tower.vision_model.…`."""
    _write(today, folder, lambda key: re.sub(r"vision_tower\.(?!vision_model)", "vision_tower.vision_model.", key))
    return folder


def published_colqwen2_base(today: Path, folder: Path) -> Path:
    """colqwen2-base: the decoder is `model.…`, and config.json has its fields at the top, without a text_config."""
    _write(today, folder, lambda key: re.sub(r"^language_model\.", "model.", key))
    config = json.loads((folder / "config.json").read_text())
    text = config.pop("text_config")
    rope = text.pop("rope_parameters")
    for new in ("model_type", "layer_types"):
        text.pop(new, None)
    text |= {"rope_theta": rope["rope_theta"]}
    text |= {"rope_scaling": {"type": "mrope", "mrope_section": rope["mrope_section"]}}
    config["vision_config"].pop("rope_parameters", None)
    config["vision_config"] |= {"model_type": "qwen2_vl", "in_chans": 3, "spatial_patch_size": 14}
    fields = {**text, **config, "torch_dtype": config.pop("dtype"), "transformers_version": "4.46.1"}
    (folder / "config.json").write_text(json.dumps(fields))
    return folder


def published_adapter(base: Path, folder: Path, family: str, *, seed: int = 5) -> Path:
    """The LoRA adapter of colpali-v1.3 or colqwen2-v1.0 over a base: its names, its target_modules, its processor."""
    decoder, targets = {
        "colpali": ("model.language_model.model.", COLPALI_TARGETS),
        "colqwen2": ("model.", COLQWEN_TARGETS),
    }[family]
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for key, weight in load_file(base / "model.safetensors").items():
        module = key.removesuffix(".weight")
        if key.endswith(".weight") and re.fullmatch(targets, module) and "vision" not in key and "visual" not in key:
            assert module.startswith((decoder, "custom_text_proj")), module
            tensors[f"base_model.model.{module}.lora_A.weight"] = _noise((4, weight.shape[1]), generator)
            tensors[f"base_model.model.{module}.lora_B.weight"] = _noise((weight.shape[0], 4), generator)
    folder.mkdir(parents=True)
    save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    config = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "lora_dropout": 0.1, "bias": "none"}
    config |= {"init_lora_weights": "gaussian", "inference_mode": True, "task_type": "FEATURE_EXTRACTION"}
    config |= {"base_model_name_or_path": str(base), "target_modules": targets, "modules_to_save": None}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    published_processor(base, folder)
    return folder


def published_processor(today: Path, folder: Path) -> Path:
    """preprocessor_config.json and the tokenizer's files; no processor_config.json, and nothing about videos."""
    for file in today.glob("tokenizer*"):
        shutil.copy(file, folder)
    settings = json.loads((today / "processor_config.json").read_text())
    images = {**settings["image_processor"], "processor_class": settings["processor_class"]}
    (folder / "preprocessor_config.json").write_text(json.dumps(images))
    (folder / "processor_config.json").unlink(missing_ok=True)
    return folder


def in_shards(today: Path, folder: Path, *, count: int = 3) -> Path:
    """The weights in several files with model.safetensors.index.json beside them."""
    shutil.copytree(today, folder)
    state = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names, places = sorted(state), {}
    for part in range(count):
        file = f"model-{part + 1:05}-of-{count:05}.safetensors"
        own = names[part::count]
        save_file({name: state[name] for name in own}, folder / file, metadata={"format": "pt"})
        places |= dict.fromkeys(own, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return folder


def without(folder: Path, copy: Path, pattern: str, file: str = "model.safetensors") -> tuple[Path, list[str]]:
    """A copy of a checkpoint in which the tensors whose names contain `pattern` are gone, and their names."""
    shutil.copytree(folder, copy)
    state = load_file(copy / file)
    gone = sorted(name for name in state if re.search(pattern, name))
    assert gone
    save_file({k: v for k, v in state.items() if k not in gone}, copy / file, metadata={"format": "pt"})
    return copy, gone


def _write(today: Path, folder: Path, renamed: Callable[[str], str]) -> None:
    shutil.copytree(today, folder)
    state = {renamed(key): tensor for key, tensor in load_file(today / "model.safetensors").items()}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})


def _noise(shape: tuple[int, int], generator: torch.Generator) -> torch.Tensor:
    return 0.2 * torch.randn(shape, generator=generator)
