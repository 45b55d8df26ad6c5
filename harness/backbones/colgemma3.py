"""ColGemma3: Gemma 3 as a late-interaction retriever. Pages have one resolution; prompts follow a chat template."""

from __future__ import annotations

import harness.compat  # noqa: F401

import math
from typing import Any

import torch
from PIL import Image

from harness.backbones.base import EngineBackbone
from harness.backbones.checkpoint import find_checkpoint
from harness.backbones.contract import Options, backbone
from harness.backbones.ink import ink_of_grid
from pruners.core.errors import PruneBoardError


class ColGemma3Backbone(EngineBackbone):
    query_prefix = ""  # the processor itself writes `Query: ` into a user turn
    query_suffix_tokens = 0
    token_layout = (
        "user turn with N visual tokens row by row, then the prompt; causal, but visual tokens see each other"
    )

    @staticmethod
    def classes() -> tuple[Any, Any]:
        from colpali_engine.models import ColGemma3, ColGemmaProcessor3

        return ColGemma3, ColGemmaProcessor3

    @property
    def page_prompt(self) -> str:
        inputs = self.page_inputs([Image.new("RGB", (64, 64), "white")])
        keep = ~self.visual_tokens(inputs)[0] & inputs["attention_mask"][0].bool()
        return str(self.processor.tokenizer.decode(inputs["input_ids"][0][keep]))

    @property
    def query_template(self) -> str:
        return str(self.processor.tokenizer.decode(self.query_inputs(["{query}"])["input_ids"][0]))

    def visual_tokens(self, inputs: Any) -> torch.Tensor:
        return inputs["input_ids"] == self.config.image_token_id

    def limit_visual_tokens(self, limit: int) -> None:
        if limit < (tokens := self.config.mm_tokens_per_image):
            raise PruneBoardError(
                f"{self.name} always makes {tokens} visual tokens; --max-visual-tokens {limit} is too few"
            )

    def grid_and_ink(self, inputs: Any, page: int) -> tuple[tuple[int, int], torch.Tensor]:
        side = math.isqrt(self.config.mm_tokens_per_image)
        return (side, side), ink_of_grid(inputs["pixel_values"][page], (side, side), self.processor.image_processor)


@backbone("colgemma3", checkpoint="", signals=("indegree", "indegree_max", "all_to_visual", "eos", "ink"), dim=128)
def load(checkpoint: str, options: Options) -> ColGemma3Backbone:
    """Any ColGemma3 checkpoint: colgemma3=path-or-id. MTEB lists none, so none is the default."""
    return ColGemma3Backbone("colgemma3", find_checkpoint(checkpoint, options.revision), options)
