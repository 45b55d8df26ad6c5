"""Jina Embeddings v4, multi-vector: its weights in ColQwen2.5's class, with the retrieval adapter merged in.

The model's own remote code needs transformers < 5 and colpali-engine needs >= 5.3, so they cannot share an environment.
They need not: the model *is* Qwen2.5-VL with a projection named `multi_vector_projector` and one LoRA adapter a task,
so renaming and adding are enough. Its page prompt ends in a line feed; its queries start with `Query: ` and have no
augmentation tokens. Pages are read with the retrieval adapter, as in MTEB.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from harness.backbones.checkpoint import Checkpoint, CheckpointError, find_checkpoint
from harness.backbones.colqwen2 import ColQwen25Backbone
from harness.backbones.contract import Options, backbone

TASK = "retrieval"
PAGE_PROMPT = "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>Describe the image.<|im_end|>\n"

# Checkpoints name the decoder `model.layers` (old) or `model.language_model.layers`; the engine's class drops `model.`.
_RENAMES = (
    (r"^base_model\.model\.", ""),
    (r"^model\.(language_model|visual)\.", r"\1."),
    (r"^model\.(layers|embed_tokens|norm)\.", r"language_model.\1."),
    (r"^multi_vector_projector\.", "custom_text_proj."),
)
_UNUSED = re.compile(r"^(lm_head|single_vector_projector)\.")
_LORA = re.compile(r"(?P<module>.+)\.lora_(?P<half>[AB])\.(?P<task>[^.]+)\.weight")


class JinaV4Backbone(ColQwen25Backbone):
    projection = "multi_vector_projector.weight"
    query_suffix_tokens = 0

    def load_processor(self) -> Any:
        processor = super().load_processor()
        processor.visual_prompt_prefix = PAGE_PROMPT
        return processor

    def load_model(self) -> Any:
        model = self.classes()[0](self.config).to(self.dtype)
        state = _base_weights(self.checkpoint)
        _merge_adapter(state, self.checkpoint.folder / "adapters", self.checkpoint.name)
        missing, unexpected = model.load_state_dict(state, strict=False)
        if missing or unexpected:
            raise CheckpointError(
                f"checkpoint {self.checkpoint.name!r} does not fit Qwen2.5-VL: it lacks {missing[:4] or 'nothing'} and "
                f"has {unexpected[:4] or 'nothing'} too many"
            )
        return model

    @property
    def config(self) -> Any:
        fields = json.loads((self.checkpoint.folder / "config.json").read_text())
        for name in ("model_type", "architectures", "auto_map"):  # they name the remote code's classes
            fields.pop(name, None)
        return self.config_class().from_dict(fields)


def _base_weights(checkpoint: Checkpoint) -> dict[str, torch.Tensor]:
    state = {}
    for path in sorted(checkpoint.folder.glob("*.safetensors")):
        for key, tensor in _tensors(path):
            if not _UNUSED.match(key):
                state[_renamed(key)] = tensor
    return state


def _merge_adapter(state: dict[str, torch.Tensor], folder: Path, name: str) -> None:
    """Add scale · B · A of the retrieval task to every weight it belongs to, in float32; nothing may be left over."""
    config_file, weights = folder / "adapter_config.json", folder / "adapter_model.safetensors"
    for path in (config_file, weights):
        if not path.is_file():
            raise CheckpointError(f"checkpoint {name!r} lacks adapters/{path.name}; download the whole repository")
    config = json.loads(config_file.read_text())
    if config.get("use_rslora") or config.get("use_dora") or config.get("rank_pattern") or config.get("alpha_pattern"):
        raise CheckpointError(
            f"the adapter of {name!r} is no plain LoRA (rslora, dora or rank patterns); cannot merge it"
        )
    scale = config["lora_alpha"] / config["r"]
    halves: dict[str, dict[str, torch.Tensor]] = {}
    for key, tensor in _tensors(weights):
        match = _LORA.fullmatch(_renamed(key))
        if match is None:
            raise CheckpointError(f"the adapter of {name!r} has a tensor that is no LoRA half: {key}")
        if match["task"] == TASK and not _UNUSED.match(match["module"] + "."):
            halves.setdefault(match["module"], {})[match["half"]] = tensor
    if not halves:
        raise CheckpointError(f"the adapter of {name!r} has no {TASK!r} task")
    for module, pair in halves.items():
        weight = f"{module}.weight"
        if weight not in state or pair.keys() != {"A", "B"}:
            raise CheckpointError(f"the adapter of {name!r} does not fit: {module} (of {len(halves)} modules)")
        state[weight] = (state[weight].float() + scale * pair["B"].float() @ pair["A"].float()).to(state[weight].dtype)


def _renamed(key: str) -> str:
    for pattern, replacement in _RENAMES:
        key = re.sub(pattern, replacement, key)
    return key


def _tensors(path: Path) -> list[tuple[str, torch.Tensor]]:
    with safe_open(path, framework="pt") as file:
        return [(key, file.get_tensor(key)) for key in file.keys()]  # noqa: SIM118 (not a dict)


@backbone(
    "jina-v4",
    checkpoint="jinaai/jina-embeddings-v4",
    signals=("indegree", "indegree_max", "all_to_visual", "eos", "ink"),
    layers=36,
    heads=16,
    dim=128,
)
def load(checkpoint: str, options: Options) -> JinaV4Backbone:
    return JinaV4Backbone("jina-v4", find_checkpoint(checkpoint, options.revision), options)
