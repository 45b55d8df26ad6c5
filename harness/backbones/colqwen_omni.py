"""ColQwen2.5-Omni: the thinker of Qwen2.5-Omni as a late-interaction retriever. Only pages are read here, no sounds.

colpali-engine 0.3.18 wrote its class for an older transformers, and building it fails twice with today's: its property
`spatial_merge_size` asks for `self.visual` before that is there, and the width of the decoder is no longer where it
looks for it. Both are mended below; all else is the engine's own.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

from collections.abc import Sequence
from typing import Any

import torch
from PIL import Image

from harness.backbones.checkpoint import find_checkpoint
from harness.backbones.colqwen2 import ColQwen2Backbone
from harness.backbones.contract import Options, backbone
from harness.backbones.engine_weights import quiet_transformers
from harness.backbones.ink import ink_of_flat_patches


class ColQwenOmniBackbone(ColQwen2Backbone):
    mteb_model = "vidore/colqwen-omni-v0.1"
    token_layout = "system turn, user turn with N visual tokens row by row, prompt, assistant turn; causal attention"

    @staticmethod
    def classes() -> tuple[Any, Any]:
        from colpali_engine.models import ColQwen2_5Omni, ColQwen2_5OmniProcessor

        class Buildable(ColQwen2_5Omni):
            spatial_merge_size = 2  # a plain attribute in the place of the engine's property; transformers sets it

            def __init__(self, config: Any, **kwargs: Any) -> None:
                config.hidden_size = config.get_text_config().hidden_size
                super().__init__(config, **kwargs)

        Buildable.__name__ = ColQwen2_5Omni.__name__
        return Buildable, ColQwen2_5OmniProcessor

    def page_inputs(self, images: Sequence[Image.Image]) -> Any:
        with quiet_transformers():  # which warns of the engine's way to call it, each time
            return super().page_inputs(images)

    def query_inputs(self, texts: Sequence[str]) -> Any:
        with quiet_transformers():
            return super().query_inputs(texts)

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

    def grid_and_ink(self, inputs: Any, page: int) -> tuple[tuple[int, int], torch.Tensor]:
        """Patches of all pages stand in one row: the engine does not fill them up here."""
        images = self.processor.image_processor
        counts = inputs["image_grid_thw"].prod(-1).tolist()
        _, height, width = (int(n) for n in inputs["image_grid_thw"][page])
        patches = inputs["pixel_values"].split(counts)[page]
        ink = ink_of_flat_patches(patches, images.patch_size, images.merge_size**2, images)
        return (height // images.merge_size, width // images.merge_size), ink


@backbone(
    "colqwen-omni",
    checkpoint="vidore/colqwen-omni-v0.1",
    revision="61e78ef2f9c826cac588a01e44df51672ce957bd",
    signals=("indegree", "indegree_max", "all_to_visual", "eos", "ink"),
    dim=128,
)
def load(checkpoint: str, options: Options) -> ColQwenOmniBackbone:
    return ColQwenOmniBackbone("colqwen-omni", find_checkpoint(checkpoint, options.revision), options)
