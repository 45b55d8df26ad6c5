"""nano: the retriever that ships with the project, a ColPali of two million parameters that reads minidocs.

It loads through ColPali's own loader, so that everything downstream runs as it does for the large backbones. Its
figures say whether a method and the harness work; they do not speak for backbones of ColPali's scale.
"""

from __future__ import annotations

from pathlib import Path

from harness.backbones.checkpoint import find_checkpoint
from harness.backbones.colpali import ColPaliBackbone
from harness.backbones.contract import Options, backbone

EMBEDDED = Path(__file__).parents[1] / "nano" / "checkpoint"


@backbone(
    "nano",
    checkpoint="embedded",
    signals=("indegree", "indegree_max", "all_to_visual", "eos", "ink"),
    layers=8,
    heads=4,
    dim=128,
)
def load(checkpoint: str, options: Options) -> ColPaliBackbone:
    folder = str(EMBEDDED) if checkpoint == "embedded" else checkpoint
    return ColPaliBackbone("nano", find_checkpoint(folder, options.revision), options)
