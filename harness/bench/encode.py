"""How busy a model is kept while pages are encoded: a stand-in of fixed latency behind real images and preprocessing.

The stand-in sleeps as long as a GPU would be busy, so the cores are free meanwhile, as they are beside a GPU. Its share
of the wall time is what a GPU's would be.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import io
import time
from collections.abc import Sequence
from typing import Any

import torch
from PIL import Image, ImageDraw

from harness.backbones.base import Prepared
from harness.backbones.contract import EncodedPage
from harness.backbones.ink import ink_of_flat_patches
from harness.benchmarks.content import image_hash
from harness.encode_ahead import encoded_ahead
from harness.progress import Progress

COLUMNS = {
    "way": "pages are made ready",
    "ms_page": "ms a page",
    "model_ms": "of these the model",
    "share": "its share",
}
VISUAL_TOKENS = 768


class StandIn:
    """ColQwen2's preprocessing, and a model that takes its time and gives nothing."""

    def __init__(self, seconds_a_page: float) -> None:
        from transformers import Qwen2VLImageProcessor

        self.seconds, self.busy = seconds_a_page, 0.0
        self.images = Qwen2VLImageProcessor(max_pixels=VISUAL_TOKENS * 28 * 28)

    def twin(self) -> StandIn:
        return self

    def prepare(self, images: Sequence[Image.Image]) -> Prepared:
        inputs = self.images(list(images), return_tensors="pt")
        patches = inputs["pixel_values"].split(inputs["image_grid_thw"].prod(-1).tolist())
        return Prepared(inputs, tuple((None, ink_of_flat_patches(page, 14, 4, self.images)) for page in patches))

    def encode_prepared(self, prepared: Prepared) -> list[EncodedPage]:
        started = time.perf_counter()
        time.sleep(self.seconds * len(prepared.places))
        self.busy += time.perf_counter() - started
        nothing = torch.zeros(VISUAL_TOKENS, 128)
        return [EncodedPage(nothing, grid, {"ink": ink}) for grid, ink in prepared.places]


def _page() -> Image.Image:
    """A page full of text: A4 at 150 dpi."""
    image = Image.new("RGB", (1240, 1754), "white")
    draw = ImageDraw.Draw(image)
    for line in range(70):
        draw.text((60, 40 + 24 * line), " ".join(f"{line * 7919 + word:x}" for word in range(40)), fill="black")
    return image


def measure(pages: int, milliseconds: float, batch: int, threads: int, progress: Progress) -> list[dict[str, Any]]:
    """One row a way: page by page before the model, and ahead of it."""
    buffer = io.BytesIO()
    _page().save(buffer, "PNG")
    encoded = buffer.getvalue()

    def read(index: int) -> tuple[Any, Any]:
        with Image.open(io.BytesIO(encoded)) as stored:
            image = stored.convert("RGB")
        return image, lambda: image_hash(image)

    batches = [range(start, min(start + batch, pages)) for start in range(0, pages, batch)]
    rows = []
    with progress("encode", total=2 * pages, done=0) as advance:
        for way in ("when their turn comes", "ahead"):
            model = StandIn(milliseconds / 1000)
            model.prepare([read(0)[0]])  # what is loaded once
            started = time.perf_counter()
            if way == "ahead":
                for found, _ in encoded_ahead(model, read, batches, threads):
                    advance(len(found))
            else:
                for indices in batches:
                    inputs = [read(i) for i in indices]
                    advance(len(model.encode_prepared(model.prepare([page for page, _ in inputs]))))
                    _ = [digest() for _, digest in inputs]
            wall = time.perf_counter() - started
            row = {"way": way, "ms_page": round(1000 * wall / pages, 1)}
            rows.append({**row, "model_ms": round(1000 * model.busy / pages, 1), "share": f"{model.busy / wall:.0%}"})
    return rows
