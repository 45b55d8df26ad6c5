"""nano: the retriever that ships with the project, a ColPali of two million parameters that reads minidocs.

It loads through ColPali's own loader, so that everything downstream runs as it does for the large backbones. Its
figures say whether a method and the harness work; they do not speak for backbones of ColPali's scale. Its card is
written down here, so that what is encoded already is found without loading transformers and colpali-engine.
"""

from __future__ import annotations

from pathlib import Path

from harness.backbones.checkpoint import find_checkpoint
from harness.backbones.colpali import ColPaliBackbone
from harness.backbones.contract import Card, Options, backbone
from harness.backbones.probe import ATTENTION_SIGNALS

EMBEDDED = Path(__file__).parents[1] / "nano" / "checkpoint"
CARD = Card(
    name="nano",
    checkpoint=str(EMBEDDED),
    revision="xxh3-8d22a635d3c7a14dcf30373af7b5f202",
    layers=8,
    heads=4,
    dim=128,
    dtype="float32",
    signals=(*ATTENTION_SIGNALS, "ink"),
    signals_from=ColPaliBackbone.signals_from,
    page_prompt="<image><bos>Describe the image.",
    token_layout=ColPaliBackbone.token_layout,
    eos_token=r"'\n' (id 5)",
    query_template="Query: {query}" + "<pad>" * 10,
)
"""Of the embedded weights, by their hash: for others the engine is asked, as for every backbone."""


@backbone(
    "nano",
    checkpoint="embedded",
    revision="xxh3-8d22a635d3c7a14dcf30373af7b5f202",
    signals=("indegree", "indegree_max", "all_to_visual", "eos", "ink"),
    layers=8,
    heads=4,
    dim=128,
)
def load(checkpoint: str, options: Options) -> ColPaliBackbone:
    folder = str(EMBEDDED) if checkpoint == "embedded" else checkpoint
    return ColPaliBackbone("nano", find_checkpoint(folder, options.revision), options, CARD)
