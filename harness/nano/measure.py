"""NDCG of a nano model on minidocs: encode with colpali-engine's own classes, exact MaxSim in float32, pytrec_eval.

A small reader for training and for the model card's test. The harness has its own store, sweep and metrics; the two
must agree, which is what makes this one worth keeping apart.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

from collections.abc import Mapping, Sequence

import pytrec_eval
import torch
from colpali_engine.models import ColPali, ColPaliProcessor
from PIL import Image

from .contrast import tokenize

BATCH = 16


@torch.inference_mode()
def encode_pages(model: ColPali, processor: ColPaliProcessor, images: Sequence[Image.Image]) -> torch.Tensor:
    """Vectors of the visual tokens `[pages, N, dim]`."""
    vectors = []
    for start in range(0, len(images), BATCH):
        batch = processor.process_images(list(images[start : start + BATCH]))
        mask = processor.get_image_mask(batch)
        batch.pop("labels", None)
        vectors.append(model(**batch)[mask].view(len(mask), -1, model.dim).float())
    return torch.cat(vectors)


@torch.inference_mode()
def encode_queries(model: ColPali, processor: ColPaliProcessor, texts: Sequence[str]) -> list[torch.Tensor]:
    """Vectors of all tokens of the query template, one tensor `[tokens, dim]` a query."""
    vectors: list[torch.Tensor] = []
    for start in range(0, len(texts), 4 * BATCH):
        batch = tokenize(processor, texts[start : start + 4 * BATCH])
        encoded = model(**batch)
        vectors.extend(v[m.bool()].float() for v, m in zip(encoded, batch["attention_mask"], strict=True))
    return vectors


def maxsim_scores(queries: Sequence[torch.Tensor], pages: torch.Tensor) -> torch.Tensor:
    """`[queries, pages]`: the sum over a query's tokens of the best dot product on the page."""
    flat = pages.flatten(0, 1).T
    return torch.stack([(query @ flat).view(len(query), len(pages), -1).amax(-1).sum(0) for query in queries])


def ndcg_at_5(scores: torch.Tensor, qrels: Mapping[int, Mapping[int, int]]) -> dict[int, float]:
    """NDCG@5 of each query, as trec_eval has it (linear gain)."""
    run = {str(q): {str(p): float(s) for p, s in enumerate(row)} for q, row in enumerate(scores.tolist())}
    truth = {str(q): {str(p): grade for p, grade in pages.items()} for q, pages in qrels.items()}
    result = pytrec_eval.RelevanceEvaluator(truth, {"ndcg_cut.5"}).evaluate(run)
    return {int(query): values["ndcg_cut_5"] for query, values in result.items()}
