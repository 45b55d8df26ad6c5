"""Jina Embeddings v4, multi-vector: its weights in ColQwen2.5's class, with the retrieval adapter merged in.

The model's own remote code needs transformers < 5 and colpali-engine needs >= 5.3, so they cannot share an environment.
They need not: the model *is* Qwen2.5-VL with a projection named `multi_vector_projector` and one LoRA adapter a task,
so renaming and adding are enough. Its page prompt ends in a line feed; its queries start with `Query: ` and have no
augmentation tokens. Pages are read with the retrieval adapter, as in MTEB. The resolution is that of the checkpoint's
own processor; MTEB's is much higher (`MTEB_VISUAL_TOKENS`), and `--max-visual-tokens` chooses it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from harness.backbones.checkpoint import CheckpointError, find_checkpoint
from harness.backbones.colqwen2 import ColQwen25Backbone
from harness.backbones.contract import Options, backbone
from harness.backbones.engine_weights import load_state, read_weights
from harness.backbones.tensor_names import plain_name, some

TASK = "retrieval"
MTEB_VISUAL_TOKENS = 37_788_800 // 28**2
"""As many as MTEB's wrapper lets a page have: its `max_pixels`, in squares of 28 pixels."""
PROJECTION = "custom_text_proj"
PAGE_PROMPT = "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>Describe the image.<|im_end|>\n"

_OTHER_HEADS = ("lm_head", "single_vector_projector")  # in the files, and not used for multi-vector retrieval
_LORA = re.compile(r"(?P<module>.+)\.lora_(?P<half>[AB])\.(?P<task>[^.]+)\.weight")
_LAYER = re.compile(r"layers\.\d+\.")


class JinaV4Backbone(ColQwen25Backbone):
    projection = "multi_vector_projector.weight"
    query_suffix_tokens = 0
    no_stock_path = "its own code, which MTEB runs, needs transformers < 5"

    def load_processor(self) -> Any:
        processor = super().load_processor()
        processor.visual_prompt_prefix = PAGE_PROMPT
        return processor

    def load_model(self) -> Any:
        weights = {plain_name(name): tensor for name, tensor in read_weights(self.checkpoint).items()}
        homeless = _merge_adapter(weights, self.checkpoint.folder / "adapters", self.checkpoint.name)
        model_class = self.classes()[0]
        model = load_state(model_class, self.config, weights, self.checkpoint, self.dtype, foreign=_OTHER_HEADS)
        if homeless:  # a weight that the network has and the files lack was named by load_state already
            raise CheckpointError(f"the adapter of {self.checkpoint.name!r} changes unknown weights: {some(homeless)}")
        return model

    @property
    def config(self) -> Any:
        fields = json.loads((self.checkpoint.folder / "config.json").read_text())
        for name in ("model_type", "architectures", "auto_map"):  # they name the remote code's classes
            fields.pop(name, None)
        return self.config_class().from_dict(fields)


def _merge_adapter(weights: dict[str, torch.Tensor], folder: Path, name: str) -> set[str]:
    """Add scale · B · A of the retrieval task to every weight it belongs to, in float32; return those not there."""
    config_file, adapter_file = folder / "adapter_config.json", folder / "adapter_model.safetensors"
    for path in (config_file, adapter_file):
        if not path.is_file():
            raise CheckpointError(f"checkpoint {name!r} lacks adapters/{path.name}; download the whole repository")
    config = json.loads(config_file.read_text())
    if config.get("use_rslora") or config.get("use_dora") or config.get("rank_pattern") or config.get("alpha_pattern"):
        raise CheckpointError(
            f"the adapter of {name!r} is no plain LoRA (rslora, dora or rank patterns); cannot merge it"
        )
    scale = config["lora_alpha"] / config["r"]
    halves = _halves(adapter_file, name)
    adapted = {module for module, _ in halves}
    _refuse_gaps(halves.keys(), adapted, weights, name)
    for module in adapted:
        if (weight := weights.get(f"{module}.weight")) is not None:
            change = halves[module, "B"].float() @ halves[module, "A"].float()
            weights[f"{module}.weight"] = (weight.float() + scale * change).to(weight.dtype)
    return {f"{module}.weight" for module in adapted} - weights.keys()


def _halves(adapter_file: Path, name: str) -> dict[tuple[str, str], torch.Tensor]:
    """The tensors of the retrieval task, by module and half (A or B). Other heads are adapted too, and not used."""
    halves = {}
    with safe_open(adapter_file, framework="pt") as file:
        for key in file.keys():  # noqa: SIM118 (not a dict)
            match = _LORA.fullmatch(plain_name(key))
            if match is None:
                raise CheckpointError(f"the adapter of {name!r} has a tensor that is no LoRA half: {key}")
            if match["task"] == TASK and match["module"] not in _OTHER_HEADS:
                halves[match["module"], match["half"]] = file.get_tensor(key)
    if not halves:
        raise CheckpointError(f"the adapter of {name!r} has no {TASK!r} task")
    return halves


def _refuse_gaps(found: Collection[tuple[str, str]], adapted: set[str], weights: Collection[str], name: str) -> None:
    """Both halves of every module, the projection's too; and what is adapted in one layer is adapted in all of them."""
    layers = {match[0] for key in weights if key.startswith("language_model.") and (match := _LAYER.search(key))}
    alike = {_LAYER.sub(layer, module) for module in adapted for layer in layers}
    expected = {(module, half) for module in {PROJECTION, *adapted, *alike} for half in "AB"}
    if gaps := expected - set(found):
        missing = some(f"{module}.lora_{half}" for module, half in gaps)
        raise CheckpointError(f"the adapter of {name!r} lacks {missing} of the {TASK!r} task; download it again")


@backbone(
    "jina-v4",
    checkpoint="jinaai/jina-embeddings-v4",
    revision="4a58ca57710c49f51896e4bc820e202fbf64904b",
    signals=("indegree", "indegree_max", "all_to_visual", "eos", "ink"),
    layers=36,
    heads=16,
    dim=128,
)
def load(checkpoint: str, options: Options) -> JinaV4Backbone:
    return JinaV4Backbone("jina-v4", find_checkpoint(checkpoint, options.revision), options)
