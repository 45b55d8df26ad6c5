"""The shipped checkpoint's figures: measured on the pinned benchmark, kept in `figures.json`, told in the model card.

`write_card` fills the card's template with what was measured; no figure in it is typed by hand.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import json
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from colpali_engine.models import ColPali, ColPaliProcessor
from PIL import Image

from harness.minidocs.files import Content, folder_of, read, recipes
from harness.minidocs.vocabulary import all_words, drawn_words

from . import checkpoint
from .checkpoint import GRID, load
from .measure import encode_pages, encode_queries, maxsim_scores, ndcg_at_5

TEMPLATE = Path(__file__).parent / "card.md"
FIGURES = "figures.json"


def measure(folder: Path = checkpoint.FOLDER) -> dict[str, Any]:
    """NDCG@5 by dataset (v2: mean of its languages), by benchmark, and by query kind and language."""
    model, processor = load(folder)
    datasets: dict[str, dict[str, float]] = defaultdict(dict)
    groups: dict[str, list[float]] = defaultdict(list)
    for benchmark, recipe in recipes():
        if benchmark == "minidocs-calibration":
            continue
        content = read(folder_of(benchmark, recipe.name))
        by_language: dict[str, list[float]] = defaultdict(list)
        for query, value in _ndcg(model, processor, content).items():
            row = content.queries[query]
            by_language[row["language"]].append(value)
            groups[f"{benchmark} {row['kind']}"].append(value)
            if benchmark == "minidocs-v2":
                groups[f"{benchmark} {row['language']}"].append(value)
        datasets[benchmark][recipe.name] = statistics.mean(map(statistics.mean, by_language.values()))
    return {
        "ndcg_at_5": {
            benchmark: {**members, "mean": statistics.mean(members.values())} for benchmark, members in datasets.items()
        },
        "ndcg_at_5_by_group": {name: statistics.mean(values) for name, values in sorted(groups.items())},
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "weights_bytes": (folder / "model.safetensors").stat().st_size,
    }


def _ndcg(model: ColPali, processor: ColPaliProcessor, content: Content) -> dict[int, float]:
    pages = encode_pages(model, processor, list(content.images.values()))
    queries = encode_queries(model, processor, [row["query"] for row in content.queries])
    return ndcg_at_5(maxsim_scores(queries, pages), content.qrels)


def encode_seconds(folder: Path = checkpoint.FOLDER) -> float:
    """CPU seconds of encoding the 500 calibration pages on one thread, image processing included, signals not.

    CPU time and not wall time: the figure must not depend on what else the machine does.
    """
    model, processor = load(folder)
    images = list(read(folder_of("minidocs-calibration", "calibration")).images.values())
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    encode_pages(model, processor, images[:16])
    start = time.process_time()
    encode_pages(model, processor, images)
    torch.set_num_threads(threads)
    return time.process_time() - start


@torch.inference_mode()
def layer_retention(folder: Path = checkpoint.FOLDER, pairs: int = 128) -> dict[str, list[float]]:
    """Score Retention at a budget of a tenth if pages keep the patches of highest in-degree at layer l (SAP, Eq. 2-4).

    The plain way, with materialised attention, on calibration pairs; `random` is the same with a random order.
    """
    model, processor = load(folder)
    model.set_attn_implementation({"text_config": "eager"})
    content = read(folder_of("minidocs-calibration", "calibration"))
    images = [content.images[place] for place in range(pairs)]
    queries = encode_queries(model, processor, [row["query"] for row in content.queries[:pairs]])
    keep = -(-GRID * GRID // 10)
    generator = torch.Generator().manual_seed(42)
    curve: list[list[float]] = []
    chance: list[float] = []
    for image, query in zip(images, queries, strict=True):
        vectors, indegree = _page_with_indegree(model, processor, image)
        curve.append([_retained(query, vectors, layer.topk(keep).indices) for layer in indegree])
        chance.append(_retained(query, vectors, torch.randperm(len(vectors), generator=generator)[:keep]))
    return {
        "in-degree": [statistics.mean(layer) for layer in zip(*curve, strict=True)],
        "random": [statistics.mean(chance)],
    }


def _retained(query: torch.Tensor, vectors: torch.Tensor, kept: torch.Tensor) -> float:
    similarity = query @ vectors.T
    return float(similarity[:, kept].amax(1).sum() / similarity.amax(1).sum())


def _page_with_indegree(
    model: ColPali, processor: ColPaliProcessor, image: Image.Image
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    batch = processor.process_images([image])
    batch.pop("labels", None)
    visual = GRID * GRID
    attentions: Sequence[torch.Tensor] = model.model.model(**batch, output_attentions=True).attentions
    vectors = model(**batch)[0, :visual]
    return vectors, [layer[0].mean(0)[:visual, :visual].sum(0) for layer in attentions]


def write_card(log: Path, folder: Path = checkpoint.FOLDER) -> None:
    """Measure the checkpoint, and write its figures, its card and the log of its training.

    `notes.md` beside the log, if there is one, tells in the card what only its author can know of that run.
    """
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    figures = measure(folder)
    figures["layer_retention_at_0.1"] = layer_retention(folder)
    figures["encode_500_pages_seconds"] = encode_seconds(folder)
    figures["training_seconds"] = rows[-1]["seconds"]
    figures["held_out_reading"] = next(r["held_out_read"] for r in reversed(rows) if "held_out_read" in r)
    (folder / FIGURES).write_text(json.dumps(figures, indent=2) + "\n")
    (folder / "training_log.jsonl").write_text(log.read_text())
    notes = log.with_name("notes.md")
    (folder / "README.md").write_text(render_card(figures, rows, notes.read_text() if notes.exists() else ""))


def render_card(figures: dict[str, Any], rows: list[dict[str, Any]], notes: str = "") -> str:
    datasets = [
        f"| {benchmark} | {name} | {value:.3f} |"
        for benchmark, members in figures["ndcg_at_5"].items()
        for name, value in members.items()
    ]
    groups = [f"| {name} | {value:.3f} |" for name, value in figures["ndcg_at_5_by_group"].items()]
    last = {row["stage"]: row["step"] for row in rows}
    layers = figures["layer_retention_at_0.1"]
    return TEMPLATE.read_text().format(
        datasets="\n".join(datasets),
        groups="\n".join(groups),
        reading_steps=last["reading"],
        contrast_steps=last["contrast"],
        minutes=round(figures["training_seconds"] / 60),
        reading=f"{100 * figures['held_out_reading']:.0f}",
        parameters=f"{figures['parameters'] / 1e6:.2f}",
        megabytes=f"{figures['weights_bytes'] / 1e6:.1f}",
        seconds=f"{figures['encode_500_pages_seconds']:.1f}",
        curve=" ".join(f"{value:.3f}" for value in layers["in-degree"]),
        chance=f"{layers['random'][0]:.3f}",
        vocabulary=len(all_words()),
        drawn=len(drawn_words()),
        notes=notes,
    )
