"""The full model of a submission against MTEB's official figures: whoever misses those measured something else."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.metrics.aggregate import benchmark_mean, data_set_mean
from harness.submissions.schema import Cell, Submission

FILE = Path(__file__).parent / "data" / "mteb_full_model_ndcg.csv"
_SAME = ("colpali", "colqwen2", "colqwen2.5", "colqwen3", "colqwen3.5", "colsmol", "colmodernvbert")
MODELS = {"jina-v4": ("jina4", "jina4mv"), **{name: (name,) for name in _SAME}}
"""Backbones of this project, and their name in MTEB's table. Other checkpoints have other names, and no figure."""

MEAN_TOLERANCE = 1.0
MANY_QUERIES, TOLERANCE_MANY, TOLERANCE_FEW = 280, 2.0, 5.0  # points of NDCG@5, in %


@dataclass(frozen=True)
class Check:
    """NDCG@5 in %, ours and MTEB's, of a data set or (`data_set` empty) of the mean over all."""

    data_set: str
    ours: float
    official: float
    tolerance: float

    @property
    def passed(self) -> bool:
        return abs(self.ours - self.official) <= self.tolerance


def compare_with_mteb(submission: Submission, complete: bool = True) -> list[Check]:
    """Every data set that MTEB has figures for, and, of a complete benchmark, the mean; empty if it has none."""
    models, table = MODELS.get(submission.backbone.name, ()), _table()
    checks = []
    for name in dict.fromkeys(cell.data_set for cell in submission.cells):
        cells = [c for c in submission.cells if c.data_set == name and c.budget == 1.0 and "5" in c.ndcg]
        known = next((table[model, name] for model in models if (model, name) in table), None)
        if known and cells:
            ours, official = _pair(cells, known)
            many = sum(queries for _, queries in known.values()) >= MANY_QUERIES
            checks.append(Check(name, ours, official, TOLERANCE_MANY if many else TOLERANCE_FEW))
    if complete and len(checks) > 1:
        ours, official = (float(benchmark_mean([getattr(c, what) for c in checks])) for what in ("ours", "official"))
        checks.append(Check("", ours, official, MEAN_TOLERANCE))
    return checks


def _pair(cells: Sequence[Cell], known: dict[str, tuple[float, int]]) -> tuple[float, float]:
    """Means over the languages that both have; a cell without a language stands for all of them."""
    shared = [cell for cell in cells if (cell.language or "default") in known]
    if not shared:
        return 100 * float(data_set_mean([c.ndcg["5"] for c in cells])), _mean([v for v, _ in known.values()])
    return (
        100 * float(data_set_mean([c.ndcg["5"] for c in shared])),
        _mean([known[c.language or "default"][0] for c in shared]),
    )


def _mean(values: Sequence[float]) -> float:
    return 100 * float(data_set_mean(values))


@cache
def _table() -> dict[tuple[str, str], dict[str, tuple[float, int]]]:
    """(model, task) -> subset -> NDCG@5 and queries."""
    found: dict[tuple[str, str], dict[str, tuple[float, int]]] = {}
    with FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            key = row["model"], row["task"]
            found.setdefault(key, {})[row["hf_subset"]] = float(row["ndcg_at_5"]), int(row["queries"])
    return found
