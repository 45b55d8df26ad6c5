"""Stage 2: pages and queries learn to find each other, by InfoNCE over MaxSim, the late interaction of ColPali.

Queries go through ColPali's own template (`Query: ` + text + ten augmentation tokens) and every token of it is scored,
exactly as at evaluation. With InfoNCE alone, after 50 steps 70 % of all best matches were with blank patches: pruning
would be measured by how much paper it keeps. `silence_loss` keeps those tokens
at right angles to every patch instead, so that a score is what its content words find.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

from collections.abc import Sequence

import torch
from colpali_engine.models import ColPali, ColPaliProcessor
from torch import nn
from torch.nn import functional

from harness.minidocs.vocabulary import ASKING_ENGLISH, ASKING_FRENCH, FILLERS

from .batches import ContrastBatch
from .checkpoint import GRID, WIDTH
from .reading import reading_loss, see

QUERY_PREFIX = "Query: "
READING_WEIGHT = 0.3
SILENCE_WEIGHT = 2.0
SILENT = frozenset(("<bos>", "<pad>", "query", ":", *FILLERS, *ASKING_ENGLISH, *ASKING_FRENCH))
"""Tokens of the template and function words: they say how something is asked, not what."""


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


def cosines(queries: torch.Tensor, mask: torch.Tensor, pages: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Each query token with each patch `[tokens, pages, N]`, and the query each token belongs to."""
    flat = queries[mask.bool()] @ pages.reshape(-1, WIDTH).T
    owner = torch.arange(len(queries)).unsqueeze(1).expand_as(mask)[mask.bool()]
    return flat.view(len(flat), len(pages), -1), owner


def maxsim(best: torch.Tensor, owner: torch.Tensor) -> torch.Tensor:
    """Mean of the best cosines over each query's tokens, `[queries, pages]`."""
    count = torch.bincount(owner)
    total = torch.zeros(len(count), best.shape[1]).index_add(0, owner, best)
    return total / count.unsqueeze(1)


def silence_loss(similarity: torch.Tensor, silent: torch.Tensor) -> torch.Tensor:
    """The largest squared cosine of each silent token on each page: 0 when it is at right angles to every patch."""
    return similarity[silent].pow(2).amax(-1).mean()


def contrast_loss(
    model: ColPali, head: nn.Linear, temperature: Temperature, processor: ColPaliProcessor, batch: ContrastBatch
) -> tuple[torch.Tensor, float]:
    """The loss, and the share of queries whose page came first in the batch."""
    features = see(model, batch.pages)
    prompt = processor.tokenizer("<bos><bos>Describe the image.\n", return_tensors="pt")["input_ids"]
    pages = embed_pages(model, features, prompt)
    tokens = tokenize(processor, [query.text for query in batch.queries])
    queries = embed_tokens(model, model.get_input_embeddings()(tokens["input_ids"]), tokens["attention_mask"])
    similarity, owner = cosines(queries, tokens["attention_mask"], pages)
    scores = maxsim(similarity.amax(-1), owner)
    loss = functional.cross_entropy(temperature(scores), batch.gold)
    silent_ids = torch.tensor(processor.tokenizer.convert_tokens_to_ids(sorted(SILENT)))
    silent = torch.isin(tokens["input_ids"][tokens["attention_mask"].bool()], silent_ids)
    loss = loss + SILENCE_WEIGHT * silence_loss(similarity, silent)
    loss = loss + READING_WEIGHT * reading_loss(features, head, batch.pages.labels)
    return loss, float((scores.argmax(1) == batch.gold).float().mean())
