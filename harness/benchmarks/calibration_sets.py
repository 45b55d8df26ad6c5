"""Calibration sets for real backbones: pairs of the ColPali training corpus, and a second distribution to compare with.

The first is the SAP paper's (500 pairs, seed 42); `colpali-train(pairs=1000,seed=7)` draws others. The second is its
Appendix's, 100 pairs of each of five ViDoRe v1 tasks, whose pages are evaluated pages of v1: an evaluation on these
tasks refuses it.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

from collections.abc import Iterable
from pathlib import Path

from harness.benchmarks.data_set import DataSet
from harness.benchmarks.known import COLPALI_TRAIN, V1_MIX, training_draw
from harness.benchmarks.mteb_tasks import load_task
from harness.benchmarks.parts import SEED, join, sample_pairs
from harness.benchmarks.training_corpus import TRAINING_CORPUS, TrainingCorpus, open_corpus

PAIRS = 500
MIX = ("VidoreArxivQA", "VidoreDocVQA", "VidoreInfoVQA", "VidoreTabfquad", "VidoreTatdqa")
MIX_PAIRS = 100


def load_calibration_set(name: str) -> DataSet:
    """A calibration set by its name."""
    if name == V1_MIX:
        return join([sample_pairs(task, MIX_PAIRS) for part in MIX for task in load_task(f"{part}Retrieval")], V1_MIX)
    return colpali_train(**(training_draw(name) or {}))


def colpali_train(
    path: str | Path = TRAINING_CORPUS, pairs: int = PAIRS, seed: int = SEED, revision: str | None = None
) -> DataSet:
    """Pairs drawn from the ColPali training corpus."""
    corpus = open_corpus(path, revision)
    return corpus.benchmark(COLPALI_TRAIN, corpus.draw(pairs, seed))


def all_draws(corpus: TrainingCorpus, sizes: Iterable[int], seeds: Iterable[int]) -> DataSet:
    """Every pair that a draw of one of these sizes by one of these seeds has, once: for many draws at the same time."""
    seeds = list(seeds)
    rows = {row for size in sizes for seed in seeds for row in corpus.draw(size, seed)}
    return corpus.benchmark(f"{COLPALI_TRAIN}-draws", sorted(rows))
