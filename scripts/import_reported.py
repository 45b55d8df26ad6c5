"""Write the figures that papers report as submissions, marked as such. Run again, it writes the same bytes.

    python scripts/import_reported.py            # into submissions/

Sources: the SAP paper's per-data-set tables, 504 cells of four methods on three backbones (`harness/paper`), and
Light-ColPali's averages as that paper quotes them; Prune-then-Merge's Table 1; AGC's average on ViDoRe v2. Nothing here
was measured by this project. docs/literature.md says which methods have no row, and why.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from harness import paper
from harness.experiments import printed
from harness.files import write_atomically
from harness.submissions.benchmark import known_data_sets
from harness.submissions.folder import BENCHMARK, FOLDER, submission_path, to_json
from harness.submissions.schema import (
    BackboneFacts,
    BenchmarkFacts,
    Cell,
    DataSetFacts,
    MethodFacts,
    Origin,
    Submission,
    Track,
    with_id,
)

BENCHMARKS = {theirs: ours for ours, theirs in printed.BENCHMARKS.items()}
DATA_SETS = {theirs: ours for ours, theirs in printed.DATA_SETS.items()}
METHODS = {
    "sap": ("sap", "SAP", "Structural Anchor Pruning, SR-guided window", Track.subset, False),
    "random": ("random", "Random", "Random patches, as reported by the SAP paper", Track.subset, False),
    "kmeans": ("kmeans", "Cluster-Merge", "Semantic clustering, as reported by the SAP paper", Track.merging, False),
    "eos_adaptive": ("docpruner", "EOS-Adaptive", "DocPruner at matched budgets, as reported", Track.subset, True),
}
"""The paper's method -> our name, its name there, a title, track, whether pages keep different fractions."""

LAYERS = {row["model"]: row["layers"] for row in paper.printed()["sr_guided_windows"]}
SUBMITTED = date(2026, 11, 16)
SAP = Origin(
    submitter="Liu, Hu, Zhang, Xiao (their paper)",
    submitted=SUBMITTED,
    code="https://github.com/Ryenhails/structural-anchor-pruning",
    note=(
        "Copied from the per-dataset tables of “Structural Anchor Pruning: Training-Free Multi-Vector Compression for "
        "Visual Document Retrieval”. NDCG and Score Retention have two decimals there; retention is in percent, as "
        "printed. On ViDoRe v2 a figure is the mean over a data set's languages. Not measured by this project."
    ),
)
LIGHT = Origin(
    submitter="Ma et al. 2025 (their paper)",
    submitted=SUBMITTED,
    paper="https://arxiv.org/abs/2506.04997",
    note=(
        "Averages that the SAP paper quotes from Light-ColPali's (table “Training-Free vs. Trained Compression”): over "
        "another set of data sets and relative to another full model, so they can be read beside the others but not "
        "ranked with them. The budget is 1 / compression factor. Not measured by this project."
    ),
)
LIGHT_SET = "average over Light-ColPali's own evaluation set"
LIGHT_BUDGETS = {"factor_4x": 1 / 4, "factor_9x": 1 / 9, "factor_25x": 1 / 25}
LIGHT_NDCG = {"colpali": (0.75, 0.75, 0.73), "colqwen2": (0.81, 0.80, 0.78)}
"""NDCG@5 of the same table, at 4, 9 and 25 times."""

MERGE = Origin(
    submitter="Yan et al. 2026 (their paper)",
    submitted=date(2026, 11, 17),
    paper="https://arxiv.org/abs/2602.19549",
    note=(
        "Copied from Table 1 of “Sculpting the Vector Space … Prune-then-Merge” (version 2): change of NDCG@5 and of "
        "storage against the base model, on average over ViDoRe v1. The paper names models, not checkpoints, and its "
        "other figures are curves. Not measured by this project."
    ),
)
V1_AVERAGE = "average over ViDoRe v1"
MERGED = {
    "colqwen2.5": ("ColQwen2.5, as the paper names it", 0.27, 58.88),
    "colnomic": ("ColNomic, as the paper names it", 0.51, 52.16),
    "jina-v4": ("Jina Embeddings v4, as the paper names it", 0.57, 52.77),
}
"""Backbone, and what it loses of NDCG@5 and of storage, in percent."""
AGC = Origin(
    submitter="Qin et al. 2026 (their paper)",
    submitted=date(2026, 11, 17),
    paper="https://arxiv.org/abs/2602.21202",
    code="https://github.com/hanxiangqin/omni-col-press",
    note=(
        "Averages on ViDoRe v2 from Table 3 of “Multi-Vector Index Compression in Any Modality”, copied from two "
        "public reviews that agree on them, not from the paper itself: 60.0 with 1,297 vectors a page, 56.7 with 64. "
        "The retriever was trained for this compression. Not measured by this project."
    ),
)
V2_AVERAGE = "average over ViDoRe v2"
AGC_BASE = "Qwen2.5-VL-3B, trained for late interaction by Qin et al."


def sap_paper() -> Iterator[Submission]:
    rows = paper.printed()["per_dataset"]
    for backbone, model in paper.MODELS.items():
        for benchmark, name in BENCHMARKS.items():
            for method in METHODS:
                wanted = (model, benchmark, method)
                found = [row for row in rows if (row["model"], row["benchmark"], row["method"]) == wanted]
                cells = [*_full(found), *map(_cell, found)]
                data_sets = tuple(DataSetFacts(name=ds) for ds in dict.fromkeys(cell.data_set for cell in cells))
                slug, expression, title, track, adaptive = METHODS[method]
                yield _reported(
                    SAP,
                    BenchmarkFacts(name=name, data_sets=data_sets),
                    _backbone(backbone),
                    MethodFacts(name=slug, expression=expression, title=title, track=track, adaptive=adaptive),
                    cells,
                )


def light_colpali() -> Iterator[Submission]:
    for row in paper.printed()["light_colpali_reported"]:
        cells = [
            Cell(data_set=LIGHT_SET, budget=budget, ndcg={"5": ndcg}, retention=row[factor])
            for (factor, budget), ndcg in zip(LIGHT_BUDGETS.items(), LIGHT_NDCG[row["model"]], strict=True)
        ]
        method = MethodFacts(
            name="light-colpali",
            expression="Light-ColPali",
            title="Light-ColPali: token merging with fine-tuning, as reported",
            track=Track.trained,
        )
        benchmark = BenchmarkFacts(name="vidore-v1", data_sets=(DataSetFacts(name=LIGHT_SET),))
        yield _reported(LIGHT, benchmark, _backbone(row["model"]), method, cells)


def prune_then_merge() -> Iterator[Submission]:
    for name, (checkpoint, lost, saved) in MERGED.items():
        cell = Cell(data_set=V1_AVERAGE, budget=round(1 - saved / 100, 4), ndcg={}, retention=round(100 - lost, 2))
        method = MethodFacts(
            name="prune-then-merge",
            expression="Prune-then-Merge",
            title="Prune-then-Merge (k = -0.75, m = 4), as reported",
            track=Track.merging,
            adaptive=True,
        )
        benchmark = BenchmarkFacts(name="vidore-v1", data_sets=(DataSetFacts(name=V1_AVERAGE),))
        yield _reported(MERGE, benchmark, BackboneFacts(name=name, checkpoint=checkpoint), method, [cell])


def agc() -> Iterator[Submission]:
    cells = [
        Cell(data_set=V2_AVERAGE, budget=1.0, ndcg={"5": 0.600}),
        Cell(data_set=V2_AVERAGE, budget=round(64 / 1297, 4), ndcg={"5": 0.567}),
    ]
    method = MethodFacts(
        name="agc-trained",
        expression="AGC",
        title="AGC with its training, 64 vectors, as reported",
        track=Track.trained,
    )
    benchmark = BenchmarkFacts(name="vidore-v2", data_sets=(DataSetFacts(name=V2_AVERAGE),))
    yield _reported(AGC, benchmark, BackboneFacts(name="omnicolpress-3b", checkpoint=AGC_BASE), method, cells)


def _full(rows: Sequence[dict[str, Any]]) -> list[Cell]:
    """The full model's cells, one a data set: the tables repeat them in every row."""
    found = {row["dataset"]: row["full_ndcg_at_5"] for row in rows}
    return [Cell(data_set=DATA_SETS[name], budget=1.0, ndcg={"5": value}) for name, value in found.items()]


def _cell(row: dict[str, Any]) -> Cell:
    return Cell(
        data_set=DATA_SETS[row["dataset"]],
        budget=row["gamma"],
        ndcg={"5": row["ndcg_at_5"]},
        retention=row["ndcg_at_5_retention_pct"],
        score_retention=row["score_retention"],
    )


def _backbone(name: str) -> BackboneFacts:
    return BackboneFacts(name=name, checkpoint=paper.CHECKPOINTS[name], layers=LAYERS[paper.MODELS[name]])


def _reported(
    origin: Origin, benchmark: BenchmarkFacts, backbone: BackboneFacts, method: MethodFacts, cells: Sequence[Cell]
) -> Submission:
    return with_id(
        Submission(
            format=1,
            id="unnamed",
            claim="reported",
            origin=origin,
            benchmark=benchmark,
            backbone=backbone,
            method=method,
            cells=tuple(cells),
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Write reported figures as submissions.")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of submissions")
    folder = parser.parse_args().out
    for name in BENCHMARKS.values():
        home, known = folder / name / BENCHMARK, known_data_sets(name)
        if not home.exists() and known is not None:  # whoever measures adds hashes to it
            home.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(home, to_json(BenchmarkFacts(name=name, data_sets=tuple(known.values()))))
    written = [*sap_paper(), *light_colpali(), *prune_then_merge(), *agc()]
    for submission in written:
        path = folder / submission_path(submission)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, to_json(submission))
    cells = sum(cell.budget < 1 for submission in written for cell in submission.cells)
    print(f"{len(written)} submissions with {cells} cells -> {folder}")


if __name__ == "__main__":
    main()
