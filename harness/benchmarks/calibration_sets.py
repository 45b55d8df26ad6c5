"""Calibration sets for real backbones: pairs of the ColPali training corpus, and a second distribution to compare with.

The first is the SAP paper's (500 pairs, seed 42); the second is its Appendix's, 100 pairs of each of five ViDoRe v1
tasks, whose pages are evaluated pages of v1: an evaluation on these tasks refuses it.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import random
from pathlib import Path

import datasets

from harness.benchmarks.content import content_hashes, file_hash
from harness.benchmarks.embedded import BenchmarkError
from harness.benchmarks.folder import Benchmark, decode_page
from harness.benchmarks.known import COLPALI_TRAIN, V1_MIX
from harness.benchmarks.mteb_tasks import load_task, loaded_revision, stored_bytes
from harness.benchmarks.parts import SEED, join, sample_pairs

TRAINING_CORPUS = "vidore/colpali_train_set"
PAIRS = 500
MIX = ("VidoreArxivQA", "VidoreDocVQA", "VidoreInfoVQA", "VidoreTabfquad", "VidoreTatdqa")
MIX_PAIRS = 100


def load_calibration_set(name: str) -> Benchmark:
    """A calibration set by its name."""
    if name == V1_MIX:
        return join([sample_pairs(task, MIX_PAIRS) for part in MIX for task in load_task(f"{part}Retrieval")], V1_MIX)
    return colpali_train()


def colpali_train(path: str | Path = TRAINING_CORPUS, pairs: int = PAIRS, seed: int = SEED) -> Benchmark:
    """Pairs drawn from the ColPali training corpus. All of it is fetched first (tens of gigabytes)."""
    try:
        rows = datasets.load_dataset(str(path), split="train")
    except (ConnectionError, OSError, ValueError) as error:
        raise BenchmarkError(
            f"{COLPALI_TRAIN} cannot be loaded: {path} is not in the local cache and could not be fetched "
            f"({type(error).__name__}); fetch it where there is a network, or calibrate on pages of your own"
        ) from error
    asked = [i for i, text in enumerate(rows["query"]) if text and text.strip()]
    drawn = sorted(random.Random(seed).sample(asked, min(pairs, len(asked))))
    chosen = rows.select(drawn).cast_column("image", datasets.Image(decode=False))
    ids = tuple(f"train-{i}" for i in drawn)
    files = tuple(file_hash(stored_bytes(row["image"]) or b"") for row in chosen)
    queries = dict(zip(ids, chosen["query"], strict=True))
    qrels = {page: {page: 1} for page in ids}
    return Benchmark(
        name=COLPALI_TRAIN,
        page_ids=ids,
        image=lambda i: decode_page(ids[i], stored_bytes(chosen[i]["image"])),
        queries=queries,
        qrels=qrels,
        file_hashes=files,
        content=content_hashes(ids, files, queries, {}, qrels),
        dropped_queries=len(rows) - len(asked),
        revision=loaded_revision(rows),
    )
