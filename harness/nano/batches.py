"""Training data, drawn afresh for every step: step `n` of a seed is always the same batch, whoever asks and when.

Labels for reading come from where words were drawn; nothing of the pinned benchmark is ever read here, and its
generator seeds live in another namespace (`minidocs-…` instead of `train/…`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from harness.minidocs.drawing import ROW
from harness.minidocs.layouts import Rendered, render
from harness.minidocs.queries import KINDS, Query, ask_for_one, phrase
from harness.minidocs.specs import FAMILY, LAYOUTS, Chart, PageSpec, make_family
from harness.minidocs.vocabulary import CHART_KINDS, COLOURS, NUMBER, drawn_words

from .checkpoint import GRID

CLASSES = (*drawn_words(), NUMBER, *(Chart(k, c).fact for k in CHART_KINDS for c in COLOURS), "<blank>")
CLASS_ID = {name: place for place, name in enumerate(CLASSES)}
BLANK = CLASS_ID["<blank>"]
IGNORE = -100

READING_PAGES = 16
FAMILIES, QUERIES_A_PAGE = 8, 3
FRENCH_SHARE = 0.35


@dataclass(frozen=True)
class ReadingBatch:
    """Pixels `[B, 3, H, W]` (uint8) and the class of each patch `[B, N]`."""

    pixels: torch.Tensor
    labels: torch.Tensor


@dataclass(frozen=True)
class ContrastBatch:
    """Pages as above, their queries, and which page answers each query."""

    pages: ReadingBatch
    queries: tuple[Query, ...]
    gold: torch.Tensor


def patch_labels(page: Rendered, pixels: np.ndarray) -> np.ndarray:
    """The class of each patch: the word that covers most of it, a chart's kind and colour, blank, or to be ignored."""
    cover = np.zeros((GRID, GRID), dtype=np.int64)
    labels = np.full((GRID, GRID), IGNORE, dtype=np.int64)
    patches = pixels.reshape(GRID, ROW, GRID, ROW, 3)
    labels[(patches == 255).all(axis=(1, 3, 4))] = BLANK
    coloured = (patches.max(axis=4).astype(int) - patches.min(axis=4) > 90).any(axis=(1, 3))
    for drawn in page.charts:
        left, top, right, bottom = (edge / ROW for edge in drawn.box)
        region = np.zeros_like(coloured)
        region[int(top) : int(np.ceil(bottom)), int(left) : int(np.ceil(right))] = True
        labels[region & coloured] = CLASS_ID[drawn.chart.fact]
    for word in page.words:
        left, top, right, _ = word.box
        row = min(top // ROW, GRID - 1)
        for column in range(left // ROW, min((right - 1) // ROW, GRID - 1) + 1):
            shared = min(right, (column + 1) * ROW) - max(left, column * ROW)
            if shared >= 4 and shared > cover[row, column]:
                cover[row, column], labels[row, column] = shared, CLASS_ID[word.word]
    return labels.reshape(-1)


def draw(pages: Sequence[PageSpec], rng: random.Random) -> ReadingBatch:
    rendered = [render(page, rng) for page in pages]
    pixels = np.stack([np.asarray(page.image.convert("RGB")) for page in rendered])
    labels = np.stack([patch_labels(page, array) for page, array in zip(rendered, pixels, strict=True)])
    return ReadingBatch(torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous(), torch.from_numpy(labels))


def reading_batch(seed: int, step: int) -> ReadingBatch:
    rng = random.Random(f"train/{seed}/reading/{step}")
    pages = [page for _ in range(READING_PAGES // FAMILY) for page in make_family(rng, _layouts(rng))]
    return draw(pages, rng)


def contrast_batch(seed: int, step: int) -> ContrastBatch:
    """Families of near-twins, and for each page up to three queries that no other page of the batch answers."""
    rng = random.Random(f"train/{seed}/contrast/{step}")
    pages = [page for _ in range(FAMILIES) for page in make_family(rng, _layouts(rng))]
    queries: list[Query] = []
    gold: list[int] = []
    for place in range(len(pages)):
        asks = [ask for kind in rng.sample(KINDS, len(KINDS)) if (ask := ask_for_one(pages, place, kind, rng, tries=6))]
        for ask in asks[:QUERIES_A_PAGE]:
            queries.append(phrase(ask, "french" if rng.random() < FRENCH_SHARE else "english", rng))
            gold.append(place)
    return ContrastBatch(draw(pages, rng), tuple(queries), torch.tensor(gold))


def _layouts(rng: random.Random) -> list[str]:
    """Half of the families keep to one layout, as the v1 datasets do; the others mix."""
    if rng.random() < 0.5:
        return [rng.choice(LAYOUTS)] * FAMILY
    return rng.choices(LAYOUTS, k=FAMILY)


class _Steps(Dataset):
    def __init__(self, make: Any, seed: int, first: int, last: int) -> None:
        self.make, self.seed, self.first, self.last = make, seed, first, last

    def __len__(self) -> int:
        return self.last - self.first

    def __getitem__(self, place: int) -> Any:
        if place >= len(self):
            raise IndexError(place)
        return self.make(self.seed, self.first + place)


def stream(make: Any, seed: int, first: int, last: int) -> Iterator[Any]:
    """The batches of steps `[first, last)`, drawn ahead in one other process."""
    return iter(DataLoader(_Steps(make, seed, first, last), batch_size=None, num_workers=1, prefetch_factor=4))
