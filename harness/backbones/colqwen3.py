"""ColQwen3 and ColQwen3.5: newer Qwen decoders, with the pages of ColQwen2.

Qwen3.5 is a hybrid: three layers of four mix tokens by a recurrence and have no attention map, so signals have a row
for each of the other layers only (`Card.attention_layers`).
"""

from __future__ import annotations

import harness.compat  # noqa: F401

from typing import Any

from harness.backbones.checkpoint import find_checkpoint
from harness.backbones.colqwen2 import ColQwen2Backbone
from harness.backbones.contract import Options, backbone


class ColQwen3Backbone(ColQwen2Backbone):
    mteb_model = "Verm1ion/ColTurk-VDR-Qwen3VL-4B-v1.0"
    query_prefix = ""  # MTEB's wrapper of this model sets none

    @staticmethod
    def classes() -> tuple[Any, Any]:
        from colpali_engine.models import ColQwen3, ColQwen3Processor

        return ColQwen3, ColQwen3Processor


class ColQwen35Backbone(ColQwen3Backbone):
    mteb_model = "athrael-soju/colqwen3.5-4.5B-v3"

    @staticmethod
    def classes() -> tuple[Any, Any]:
        from colpali_engine.models import ColQwen3_5, ColQwen3_5Processor

        return ColQwen3_5, ColQwen3_5Processor


@backbone(
    "colqwen3",
    checkpoint="Verm1ion/ColTurk-VDR-Qwen3VL-4B-v1.0",
    revision="d56c7bbc278ba2fe4ac1c255fb0e55dd46b40bad",
    signals=("indegree", "indegree_max", "all_to_visual", "eos", "ink"),
    layers=36,
    heads=32,
    dim=128,
)
def load_colqwen3(checkpoint: str, options: Options) -> ColQwen3Backbone:
    return ColQwen3Backbone("colqwen3", find_checkpoint(checkpoint, options.revision), options)


@backbone(
    "colqwen3.5",
    checkpoint="athrael-soju/colqwen3.5-4.5B-v3",
    revision="4ad8f151e39bce3adcf88e0bdd72e724c7606638",
    signals=("indegree", "indegree_max", "all_to_visual", "eos", "ink"),
    layers=8,
    heads=16,
    dim=128,
)
def load_colqwen35(checkpoint: str, options: Options) -> ColQwen35Backbone:
    return ColQwen35Backbone("colqwen3.5", find_checkpoint(checkpoint, options.revision), options)
