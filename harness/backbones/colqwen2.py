"""ColQwen2 and ColQwen2.5: Qwen2-VL and Qwen2.5-VL as late-interaction retrievers with variable resolution.

The engine's classes are used, not transformers' native `ColQwen2ForRetrieval`: that one gives image tokens
one-dimensional positions.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

from typing import Any

import torch

from harness.backbones.base import EngineBackbone
from harness.backbones.checkpoint import find_checkpoint
from harness.backbones.contract import Options, backbone
from harness.backbones.ink import ink_of_flat_patches
from pruners.core.errors import PruneBoardError


class ColQwen2Backbone(EngineBackbone):
    mteb_model = "vidore/colqwen2-v1.0"
    token_layout = "user turn, <|vision_start|>, N visual tokens row by row, <|vision_end|>, prompt; causal attention"

    @staticmethod
    def classes() -> tuple[Any, Any]:
        from colpali_engine.models import ColQwen2, ColQwen2Processor

        return ColQwen2, ColQwen2Processor

    def limit_visual_tokens(self, limit: int) -> None:
        images = self.processor.image_processor
        side = images.patch_size * images.merge_size
        smallest = -(-images.size["shortest_edge"] // side**2)
        if limit < smallest:
            raise PruneBoardError(
                f"{self.name} makes at least {smallest} visual tokens a page; --max-visual-tokens {limit} is too few"
            )
        images.size["longest_edge"] = limit * side**2

    def grid_and_ink(self, inputs: Any, page: int) -> tuple[tuple[int, int], torch.Tensor]:
        images = self.processor.image_processor
        _, height, width = (int(n) for n in inputs["image_grid_thw"][page])
        patches = inputs["pixel_values"][page][: height * width]
        ink = ink_of_flat_patches(patches, images.patch_size, images.merge_size**2, images)
        return (height // images.merge_size, width // images.merge_size), ink


class ColQwen25Backbone(ColQwen2Backbone):
    mteb_model = "vidore/colqwen2.5-v0.2"

    @staticmethod
    def classes() -> tuple[Any, Any]:
        from colpali_engine.models import ColQwen2_5, ColQwen2_5_Processor

        return ColQwen2_5, ColQwen2_5_Processor


@backbone(
    "colqwen2",
    checkpoint="vidore/colqwen2-v1.0",
    revision="530094e83a40ca4edcb5c9e5ddfa61a4b5ea0d2f",
    signals=("indegree", "indegree_max", "all_to_visual", "eos", "ink"),
    layers=28,
    heads=12,
    dim=128,
)
def load_colqwen2(checkpoint: str, options: Options) -> ColQwen2Backbone:
    return ColQwen2Backbone("colqwen2", find_checkpoint(checkpoint, options.revision), options)


@backbone(
    "colqwen2.5",
    checkpoint="vidore/colqwen2.5-v0.2",
    revision="6f6fcdfd1a114dfe365f529701b33d66b9349014",
    signals=("indegree", "indegree_max", "all_to_visual", "eos", "ink"),
    layers=36,
    heads=16,
    dim=128,
)
def load_colqwen25(checkpoint: str, options: Options) -> ColQwen25Backbone:
    return ColQwen25Backbone("colqwen2.5", find_checkpoint(checkpoint, options.revision), options)
