"""Stage 2: pages and queries learn to find each other, by InfoNCE over MaxSim, the late interaction of ColPali.

Queries go through ColPali's own template (`Query: ` + text + ten augmentation tokens) and every token of it is scored,
exactly as at evaluation. Scoring only the content words would be another retriever than the one that is measured.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from colpali_engine.models import ColPali, ColPaliProcessor
from torch import nn
from torch.nn import functional

from .batches import ContrastBatch
from .checkpoint import GRID, WIDTH
from .reading import reading_loss, see

QUERY_PREFIX = "Query: "
READING_WEIGHT = 0.3


class Temperature(nn.Module):
    """A learned logit scale on the mean cosine of a query's tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.log = nn.Parameter(torch.tensor(4.0))

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        return scores * self.log.clamp(max=6.0).exp()


def tokenize(processor: ColPaliProcessor, texts: Sequence[str]) -> dict[str, torch.Tensor]:
    suffix = processor.query_augmentation_token * 10
    batch = processor.process_texts([QUERY_PREFIX + text + suffix for text in texts])
    # Zeros make attention bidirectional and independent of padding; without them transformers makes it causal.
    return {**batch, "token_type_ids": torch.zeros_like(batch["input_ids"])}


def embed_tokens(model: ColPali, embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """ColPali's text side from input embeddings to unit vectors; skips the vocabulary logits that its forward makes."""
    hidden = model.model.model(
        inputs_embeds=embeddings, attention_mask=mask, token_type_ids=torch.zeros_like(mask)
    ).last_hidden_state
    return functional.normalize(model.custom_text_proj(hidden), dim=-1)


def embed_pages(model: ColPali, features: torch.Tensor, prompt: torch.Tensor) -> torch.Tensor:
    """Vectors of the visual tokens `[B, N, dim]`; `prompt` is the text that follows the image tokens."""
    visual = model.model.model.multi_modal_projector(features)
    words = model.get_input_embeddings()(prompt).expand(len(visual), -1, -1)
    both = torch.cat([visual, words], dim=1)
    return embed_tokens(model, both, torch.ones(both.shape[:2], dtype=torch.long))[:, : GRID * GRID]


def maxsim(queries: torch.Tensor, mask: torch.Tensor, pages: torch.Tensor) -> torch.Tensor:
    """Mean over a query's tokens of the best cosine on a page, `[queries, pages]`. All pages have the same length."""
    flat = queries[mask.bool()] @ pages.reshape(-1, WIDTH).T
    best = flat.view(len(flat), len(pages), -1).amax(-1)
    owner = torch.arange(len(queries)).unsqueeze(1).expand_as(mask)[mask.bool()]
    total = torch.zeros(len(queries), len(pages)).index_add(0, owner, best)
    return total / mask.sum(1, keepdim=True)


def contrast_loss(
    model: ColPali, head: nn.Linear, temperature: Temperature, processor: ColPaliProcessor, batch: ContrastBatch
) -> tuple[torch.Tensor, float]:
    """The loss, and the share of queries whose page came first in the batch."""
    features = see(model, batch.pages)
    prompt = processor.tokenizer("<bos><bos>Describe the image.\n", return_tensors="pt")["input_ids"]
    pages = embed_pages(model, features, prompt)
    tokens = tokenize(processor, [query.text for query in batch.queries])
    queries = embed_tokens(model, model.get_input_embeddings()(tokens["input_ids"]), tokens["attention_mask"])
    scores = maxsim(queries, tokens["attention_mask"], pages)
    loss = functional.cross_entropy(temperature(scores), batch.gold)
    first = float((scores.argmax(1) == batch.gold).float().mean())
    return loss + READING_WEIGHT * reading_loss(features, head, batch.pages.labels), first
