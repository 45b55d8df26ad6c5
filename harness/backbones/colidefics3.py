"""ColIdefics3, ColSmol and ColModernVBERT: late-interaction retrievers that cut a page into tiles plus a thumbnail.

Tiles come row by row, each with its own square of tokens, then the thumbnail of the whole page. All of them are indexed
by the stock retriever, so all are visual tokens here; together they form no rectangle, so a split page has no grid.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import math
from typing import Any

import torch

from harness.backbones.base import EngineBackbone
from harness.backbones.checkpoint import find_checkpoint
from harness.backbones.contract import Options, backbone
from harness.backbones.ink import ink_of_grid
from pruners.core.errors import PruneBoardError


class ColIdefics3Backbone(EngineBackbone):
    mteb_model = "vidore/colSmol-500M"
    projection = "linear.weight"
    token_layout = (
        "tiles row by row, each after its <row_col> marker, then the thumbnail, then prompt; causal attention"
    )

    @staticmethod
    def classes() -> tuple[Any, Any]:
        from colpali_engine.models import ColIdefics3, ColIdefics3Processor

        return ColIdefics3, ColIdefics3Processor

    def limit_visual_tokens(self, limit: int) -> None:
        """Fewer tiles a side: a page of n x n tiles and its thumbnail has (n² + 1) times the tokens of one tile."""
        images, per_tile = self.processor.image_processor, self.processor.image_seq_len
        if limit < 2 * per_tile:
            raise PruneBoardError(
                f"{self.name} makes at least {2 * per_tile} visual tokens a page (a tile and the thumbnail); "
                f"--max-visual-tokens {limit} is too few"
            )
        side = math.isqrt(limit // per_tile - 1) * images.max_image_size["longest_edge"]
        images.size["longest_edge"] = min(images.size["longest_edge"], side)

    def grid_and_ink(self, inputs: Any, page: int) -> tuple[tuple[int, int] | None, torch.Tensor]:
        per_tile = self.processor.image_seq_len
        tokens = int(self.processor.get_image_mask(inputs)[page].sum())
        grid = (math.isqrt(per_tile), math.isqrt(per_tile))
        tiles = inputs["pixel_values"][page][: tokens // per_tile]
        ink = torch.cat([ink_of_grid(tile, grid, self.processor.image_processor) for tile in tiles], dim=1)
        return (grid if len(tiles) == 1 else None), ink


class ColModernVBertBackbone(ColIdefics3Backbone):
    mteb_model = "ModernVBERT/colmodernvbert"
    projection = "custom_text_proj.weight"
    query_prefix = ""  # MTEB's wrapper of this model sets none
    token_layout = (
        "tiles row by row, each after its <row_col> marker, then the thumbnail, then prompt; bidirectional attention, "
        "in most layers among neighbours only"
    )
    signals_from = "the retriever's own text encoder, all layers"

    @staticmethod
    def classes() -> tuple[Any, Any]:
        from colpali_engine.models import ColModernVBert, ColModernVBertProcessor

        return ColModernVBert, ColModernVBertProcessor


@backbone(
    "colmodernvbert",
    checkpoint="ModernVBERT/colmodernvbert",
    revision="9052fc0ef8acf9fb764681ce0315a7f89ea7d276",
    signals=("indegree", "indegree_max", "all_to_visual", "eos", "ink"),
    layers=22,
    heads=12,
    dim=128,
)
def load_colmodernvbert(checkpoint: str, options: Options) -> ColModernVBertBackbone:
    return ColModernVBertBackbone("colmodernvbert", find_checkpoint(checkpoint, options.revision), options)


@backbone(
    "colsmol",
    checkpoint="vidore/colSmol-500M",
    revision="1aa9325cba7ed2b3b9b97ede4d55026322504902",
    signals=("indegree", "indegree_max", "all_to_visual", "eos", "ink"),
    dim=128,
)
def load(checkpoint: str, options: Options) -> ColIdefics3Backbone:
    """Any ColIdefics3 checkpoint: colsmol=path-or-id."""
    return ColIdefics3Backbone("colsmol", find_checkpoint(checkpoint, options.revision), options)
