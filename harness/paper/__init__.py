"""What the SAP paper printed, as data: Liu, Hu, Zhang, Xiao, "Structural Anchor Pruning: Training-Free Multi-Vector
Compression for Visual Document Retrieval". Figures are rounded as its authors rounded them; nothing here was measured
by this project."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

MODELS = {"colpali": "colpali", "colqwen2": "colqwen2", "jina-v4": "jina_v4"}
"""Our backbones that the paper evaluated, and its names for them."""

CHECKPOINTS = {
    "colpali": "vidore/colpali-v1.3",
    "colqwen2": "vidore/colqwen2-v1.0",
    "jina-v4": "jinaai/jina-embeddings-v4",
}
"""The checkpoints it evaluated (its Appendix A)."""


@cache
def printed() -> dict[str, Any]:
    """All of it."""
    return json.loads((Path(__file__).parent / "sap_paper.json").read_text(encoding="utf-8"))


def of_model(table: str, backbone: str) -> list[dict[str, Any]]:
    """The rows of a table that are about a backbone; none if the paper did not evaluate it."""
    return [row for row in printed()[table] if row["model"] == MODELS.get(backbone)]
