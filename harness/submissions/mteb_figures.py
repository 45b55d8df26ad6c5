"""MTEB's published figures of full models, which a submission's full model is held to. Imports nothing heavy."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

MTEB = Path(__file__).parent / "data" / "mteb_full_model_ndcg.csv"
_SAME = ("colpali", "colqwen2", "colqwen2.5", "colqwen3", "colqwen3.5", "colsmol", "colmodernvbert")
MODELS = {"jina-v4": ("jina4", "jina4mv"), **{name: (name,) for name in _SAME}}
"""Backbones of this project, and their name in MTEB's table. Other checkpoints have other names, and no figure."""


@cache
def mteb_table() -> dict[tuple[str, str], dict[str, tuple[float, int]]]:
    """(model, task) -> subset -> NDCG@5 and queries."""
    found: dict[tuple[str, str], dict[str, tuple[float, int]]] = {}
    with MTEB.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            key = row["model"], row["task"]
            found.setdefault(key, {})[row["hf_subset"]] = float(row["ndcg_at_5"]), int(row["queries"])
    return found
