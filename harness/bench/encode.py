"""How busy a model is kept while pages are encoded: a stand-in of fixed latency behind real images and preprocessing.

Everything else is the real thing: decoding, hashing, resizing, ink, and a store on disk. The stand-in sleeps as long
as a GPU would be busy, so the cores are free meanwhile, as they are beside a GPU. Its share of the wall time is what a
GPU's would be. Cores that take longer for a page than the model bound it, whatever the code does: that is shown too.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import io
import os
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image, ImageDraw

from harness.backbones.contract import Card, EncodedPage
from harness.backbones.ink import ink_of_flat_patches
from harness.backbones.prepared import Empty, Prepared, side_by_side
from harness.backbones.probe import ATTENTION_SIGNALS
from harness.benchmarks.data_set import DataSet, decode_page
from harness.encode import encode
from harness.progress import Progress

COLUMNS = {
    "model_ms": "model, ms a page",
    "way": "pages are made ready",
    "ms_page": "ms a page",
    "share": "the model's share",
    "cpu_ms": "CPU ms a page",
    "bound": "share that cores allow",
}
VISUAL_TOKENS, LAYERS, DIM = 768, 28, 128  # ColQwen2's
WAYS = {False: "when their turn comes", True: "ahead"}


class StandIn:
    """ColQwen2's preprocessing, and a model that takes its time and gives zeros."""

    device = "cpu"
    card = Card(
        "stand-in", "none", "1", LAYERS, 12, DIM, "float32", (*ATTENTION_SIGNALS, "ink"), "nothing", "", "", "", ""
    )

    def __init__(self, seconds_a_page: float, works_ahead: bool) -> None:
        from transformers import Qwen2VLImageProcessor

        self.seconds, self.works_ahead, self.busy = seconds_a_page, works_ahead, 0.0
        self.images = Qwen2VLImageProcessor(max_pixels=VISUAL_TOKENS * 28 * 28)

    def prepare(self, images: Sequence[Image.Image]) -> Prepared:
        inputs = self.images(list(images), return_tensors="pt")
        patches = inputs["pixel_values"].split(inputs["image_grid_thw"].prod(-1).tolist())
        return Prepared(inputs, tuple((None, ink_of_flat_patches(page, 14, 4, self.images)) for page in patches))

    def side_by_side(self, pages: Sequence[Prepared], empty: Empty) -> Prepared:
        return side_by_side(pages, None, empty)  # pages of one size need no filling up

    def encode_pages(self, images: Sequence[Image.Image]) -> list[EncodedPage]:
        return self.encode_prepared(self.prepare(images))

    def encode_prepared(self, prepared: Prepared) -> list[EncodedPage]:
        started = time.perf_counter()
        time.sleep(self.seconds * len(prepared.places))
        self.busy += time.perf_counter() - started
        return [_zeros(ink) for _, ink in prepared.places]

    def encode_queries(self, texts: Sequence[str]) -> list[torch.Tensor]:
        return [torch.zeros(1, DIM) for _ in texts]


def _zeros(ink: torch.Tensor) -> EncodedPage:
    tokens = ink.shape[1]
    signals = {name: torch.zeros(LAYERS, tokens) for name in ATTENTION_SIGNALS}
    return EncodedPage(torch.zeros(tokens, DIM), None, {**signals, "ink": ink})


def _page() -> bytes:
    """A page full of text as a file: A4 at 150 dpi."""
    image = Image.new("RGB", (1240, 1754), "white")
    draw = ImageDraw.Draw(image)
    for line in range(70):
        draw.text((60, 40 + 24 * line), " ".join(f"{line * 7919 + word:x}" for word in range(40)), fill="black")
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def measure(
    pages: int, milliseconds: Sequence[float], batch: int, workers: int | None, progress: Progress
) -> list[dict[str, Any]]:
    """One row a latency and way: page by page before the model, and ahead of it."""
    file = _page()
    ids = tuple(f"page {i}" for i in range(pages))
    content = {"corpus": f"{pages}", "queries": "1"}
    data_set = DataSet("bench", ids, lambda i: decode_page(ids[i], file), {"q": "?"}, {}, content=content)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    rows = []
    for latency in milliseconds:
        for ahead, way in WAYS.items():
            model = StandIn(latency / 1000, ahead)
            model.prepare([data_set.image(0)])  # what is loaded once
            with tempfile.TemporaryDirectory() as folder:
                started, spent = time.perf_counter(), _cpu_seconds()
                encode(model, data_set, Path(folder), batch_size=batch, workers=workers, progress=progress)
                wall, spent = time.perf_counter() - started, _cpu_seconds() - spent
            cpu = 1000 * spent / pages
            rows.append(
                {
                    "model_ms": latency,
                    "way": way,
                    "ms_page": round(1000 * wall / pages, 1),
                    "share": f"{model.busy / wall:.0%}",
                    "cpu_ms": round(cpu, 1),
                    "bound": f"{latency / (latency + cpu) if not ahead else min(1.0, cores * latency / cpu):.0%}",
                }
            )
    return rows


def _cpu_seconds() -> float:
    """Of this process and of those it has started and seen end."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
