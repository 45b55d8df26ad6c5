"""ColPali: PaliGemma-3B read as a late-interaction retriever (vidore/colpali-v1.3: 18 layers, 8 heads, 1024 patches).

Any ColPali checkpoint loads: image size, patch size, layers and heads come from its config, and the output dimension
from its weights (colpali-engine itself always makes 128).
"""

from __future__ import annotations

import harness.compat  # noqa: F401

from collections.abc import Sequence
from typing import Any

import torch
from PIL import Image

from harness.backbones.base import EngineBackbone
from harness.backbones.checkpoint import find_checkpoint
from harness.backbones.contract import Options, backbone
from harness.backbones.ink import ink_of_grid
from pruners.core.errors import PruneBoardError


class ColPaliBackbone(EngineBackbone):
    mteb_model = "vidore/colpali-v1.3"
    unused = ("model.lm_head",)
    token_layout = "<image> x N from position 0, then the prompt; attention is bidirectional over all of it"

    @staticmethod
    def classes() -> tuple[Any, Any]:
        from colpali_engine.models import ColPali, ColPaliProcessor

        return ColPali, ColPaliProcessor

    def load_model(self) -> Any:
        model = super().load_model()
        # The language-model head is never loaded (it stays on the meta device) and never used here: full-vocabulary
        # logits of a page would be 1 GB.
        model.model.lm_head = torch.nn.Identity()
        return model

    def limit_visual_tokens(self, limit: int) -> None:
        tokens = self.processor.image_seq_length
        if limit < tokens:
            raise PruneBoardError(
                f"{self.name} always makes {tokens} visual tokens; --max-visual-tokens {limit} cannot be had. "
                "Leave the option out, or use a backbone with variable resolution such as colqwen2"
            )

    def page_inputs(self, images: Sequence[Image.Image]) -> Any:
        inputs = super().page_inputs(images)
        inputs.pop("labels", None)  # made for training; the head that would use them is gone
        return inputs

    def query_inputs(self, texts: Sequence[str]) -> Any:
        inputs = super().query_inputs(texts)
        # Without token types a padded query is read causally and an unpadded one bidirectionally: the same query
        # would get other vectors beside a longer one. All zeros means one bidirectional block, as in training.
        inputs["token_type_ids"] = torch.zeros_like(inputs["input_ids"])
        return inputs

    def grid_and_ink(self, inputs: Any, page: int) -> tuple[tuple[int, int], torch.Tensor]:
        pixels, patch = inputs["pixel_values"][page], self.config.vision_config.patch_size
        grid = (pixels.shape[1] // patch, pixels.shape[2] // patch)
        return grid, ink_of_grid(pixels, grid, self.processor.image_processor)


@backbone(
    "colpali",
    checkpoint="vidore/colpali-v1.3",
    revision="1b5c8929330df1a66de441a9b5409a878f0de5b0",
    signals=("indegree", "indegree_max", "all_to_visual", "eos", "ink"),
    layers=18,
    heads=8,
    dim=128,
)
def load(checkpoint: str, options: Options) -> ColPaliBackbone:
    return ColPaliBackbone("colpali", find_checkpoint(checkpoint, options.revision), options)
