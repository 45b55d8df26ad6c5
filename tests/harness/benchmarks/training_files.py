"""A small training corpus in the published layout of vidore/colpali_train_set: parquet files with row groups."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from tests.harness.evaluation.toy import paint


def write_training_corpus(folder: Path, rows: int = 80, files: int = 2, noise: int = 0) -> Path:
    """Page i has number i painted on it; every fourth row asks nothing. `noise` is the side of pages that are large."""
    (folder / "data").mkdir(parents=True)
    every = [
        {
            "image": {"bytes": grain(i, noise) if noise else paint(i % 256), "path": f"{i}.png"},
            "image_filename": f"{i}.png",
            "query": f"find {i % 256} {i}" if i % 4 else None,
            "answer": "",
            "source": "pdf",
        }
        for i in range(rows)
    ]
    size = -(-rows // files)
    for f in range(files):
        part = pa.Table.from_pylist(every[f * size : (f + 1) * size])
        pq.write_table(part, folder / "data" / f"train-{f:05d}-of-{files:05d}.parquet", row_group_size=8)
    return folder


def grain(number: int, side: int) -> bytes:
    """A picture that cannot be packed."""
    pixels = np.random.default_rng(number).integers(0, 256, (side, side, 3), np.uint8)
    encoded = io.BytesIO()
    Image.fromarray(pixels).save(encoded, "PNG")
    return encoded.getvalue()
