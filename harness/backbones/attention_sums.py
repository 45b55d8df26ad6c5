"""The attention each visual token of a page receives in one layer, from queries and keys, without an attention map.

Given the log-sum-exp of every row, a column sum needs one more QK^T in small tiles, over visual columns only:

    received_j = sum_i exp(scale * q_i . k_j - lse_i)        (SAP, Eq. 2)

Without it (the kernel did not give it, or the mask is an unusual one) rows are processed block by block; on a GPU those
of all pages of a batch at once. Logits and sums are float32 whatever the weights are: bfloat16 sums lose the ranking of
patches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch

ROW_TILE, COLUMN_TILE = 128, 256  # with 8 heads a tile of logits is 1 MB: larger ones leave the cache
BLOCK_BYTES = 32 * 2**20  # logits held at once by the portable row-block path
BATCH_BLOCK_BYTES = 256 * 2**20  # the same for a whole batch, on a GPU

LOG2_E = math.log2(math.e)

FULL, CAUSAL, OTHER = "full", "causal", "other"
"""Which visual rows see which visual columns. Only `OTHER` needs the mask itself."""


@dataclass(frozen=True)
class Layout:
    """Where the tokens of one page are, in order: visual ones, and other valid ones (prompt, specials)."""

    visual: torch.Tensor
    others: torch.Tensor

    @cached_property
    def last_is_visual(self) -> bool:
        """Whether the last valid token, whose attention is the `eos` signal, is a patch."""
        return len(self.others) == 0 or bool(self.visual[-1] > self.others[-1])

    @cached_property
    def run(self) -> tuple[int, int] | None:
        """Start and stop of the visual tokens if they are one run (they are, except for split images)."""
        start, stop = int(self.visual[0]), int(self.visual[-1]) + 1
        return (start, stop) if stop - start == len(self.visual) else None


def pattern_of(mask: torch.Tensor, visual: torch.Tensor) -> str:
    """Which of the patterns a page's mask [T, T] is among its visual tokens."""
    full = causal = True
    position = torch.arange(len(visual), device=mask.device)
    for start in range(0, len(visual), 512):
        block = mask[visual[start : start + 512]][:, visual]
        full = full and bool(block.all())
        causal = causal and bool((block == (position <= position[start : start + 512, None])).all())
    return FULL if full else CAUSAL if causal else OTHER


@dataclass(frozen=True)
class TileRows:
    """One page's queries [H, T, d] and keys [Hkv, T, d], and who may see whom."""

    query: torch.Tensor
    key: torch.Tensor
    scale: float
    mask: torch.Tensor | None
    causal: bool

    def attention(self, rows: torch.Tensor) -> Iterator[torch.Tensor]:
        """The softmax rows of the given tokens over all tokens, [H, r, T] float32, a block at a time."""
        heads, tokens, _ = self.query.shape
        key = self.key.float().transpose(1, 2)
        size = max(1, BLOCK_BYTES // (heads * tokens * 4))
        for start in range(0, len(rows), size):
            at = rows[start : start + size]
            logits = _grouped_product(self.query[:, at].float(), key).mul_(self.scale)
            if self.mask is not None:
                logits.masked_fill_(~self.mask[at], -math.inf)
            elif self.causal:
                logits.masked_fill_(torch.arange(tokens, device=at.device) > at[:, None], -math.inf)
            yield logits.softmax(-1)


def _grouped_product(query: torch.Tensor, key_t: torch.Tensor) -> torch.Tensor:
    """q @ k for grouped-query attention, [H, r, d] x [Hkv, d, c] -> [H, r, c], without repeating the keys."""
    heads, rows, dim = query.shape
    groups = key_t.shape[0]
    return torch.bmm(query.reshape(groups, heads // groups * rows, dim), key_t).view(heads, rows, -1)


def page_signals(rows: TileRows, layout: Layout, pattern: str, lse: torch.Tensor | None) -> dict[str, torch.Tensor]:
    """The signals of one layer of one page, [N] each; `lse [H, T]` is each row's log-sum-exp, if the kernel gave it."""
    visual = layout.visual
    if lse is not None and pattern != OTHER:
        from_visual = _received_by_tiles(rows, layout, lse, causal=pattern == CAUSAL)
    else:
        from_visual = sum(
            (_visual(block, layout, dim=2).sum(1) for block in rows.attention(visual)),
            start=torch.zeros(rows.query.shape[0], len(visual), device=visual.device),
        )
    from_all = from_visual.clone()
    last = None
    for block in rows.attention(layout.others):
        seen = _visual(block, layout, dim=2)
        from_all += seen.sum(1)
        last = seen[:, -1]  # others are in order: if the page ends with a prompt token, this is its row
    if layout.last_is_visual:
        last = next(rows.attention(visual[-1:]))[:, 0, visual]
    assert last is not None, "a page has a last token"
    return {
        "indegree": from_visual.mean(0),
        "indegree_max": from_visual.amax(0),
        "all_to_visual": from_all.mean(0),
        "eos": last.mean(0),
    }


def batch_signals(
    query: torch.Tensor,
    key: torch.Tensor,
    scale: float,
    mask: torch.Tensor | None,
    causal: bool,
    visual: torch.Tensor,
    valid: torch.Tensor,
) -> dict[str, torch.Tensor]:
    """The signals of one layer of all pages of a batch, `[B, T]` each, of which visual columns mean something.

    `query [B, H, T, d]`, `key [B, Hkv, T, d]`, `mask [B, 1, T, T]`, `visual` and `valid [B, T]`. Rows are summed by a
    product with zeros and ones, so that no step is taken page by page.
    """
    pages, heads, tokens, dim = query.shape
    groups = key.shape[1]
    position = torch.arange(tokens, device=query.device)
    last = position == (position * valid).amax(1, keepdim=True)
    counted = torch.stack([visual & valid, valid, last], dim=1).float()
    received = torch.zeros(pages, heads, 3, tokens, device=query.device)
    key_t = key.float().transpose(2, 3)
    size = max(1, BATCH_BLOCK_BYTES // (pages * heads * tokens * 4))
    for start in range(0, tokens, size):
        at = slice(start, min(start + size, tokens))
        rows = query[:, :, at].float().reshape(pages, groups, -1, dim)
        logits = (rows @ key_t).view(pages, heads, -1, tokens).mul_(scale)
        if mask is not None or causal:
            seen = mask[:, :, at] if mask is not None else position <= position[at, None]
            # A row of padding may see everything: it is not counted, and so at least has numbers.
            logits.masked_fill_(~seen & valid[:, None, at, None], -math.inf)
        received += counted[:, None, :, at] @ logits.softmax(-1)
    from_visual = received[:, :, 0]
    return {
        "indegree": from_visual.mean(1),
        "indegree_max": from_visual.amax(1),
        "all_to_visual": received[:, :, 1].mean(1),
        "eos": received[:, :, 2].mean(1),
    }


def _received_by_tiles(rows: TileRows, layout: Layout, lse: torch.Tensor, *, causal: bool) -> torch.Tensor:
    """Sum over visual rows of each visual column, [H, N], from the rows' log-sum-exp.

    The log-sum-exp rides along as one more column of the product ([q, -lse] . [k, 1]), all in base two, whose
    exponential is the faster one; one buffer serves all tiles.
    """
    query, key, lse = (_visual(tensor, layout) for tensor in (rows.query, rows.key, lse))
    (heads, tokens, dim), groups = query.shape, key.shape[0]
    tile_rows = min(ROW_TILE, tokens)
    keys = torch.ones(groups, tokens, dim + 1)
    keys[:, :, :dim] = key
    queries = torch.empty(heads, tile_rows, dim + 1)
    buffer = torch.empty(heads * tile_rows * min(COLUMN_TILE, tokens))
    future = torch.ones(tile_rows, tile_rows, dtype=torch.bool).triu(1)
    received = torch.zeros(heads, tokens)
    for top in range(0, tokens, tile_rows):
        bottom = min(top + tile_rows, tokens)
        height, edge = bottom - top, bottom if causal else tokens
        tile = queries[:, :height]
        torch.mul(query[:, top:bottom], rows.scale * LOG2_E, out=tile[:, :, :dim])
        torch.mul(lse[:, top:bottom], -LOG2_E, out=tile[:, :, dim])
        tile = tile.reshape(groups, -1, dim + 1)
        for left in range(0, edge, COLUMN_TILE):
            right = min(left + COLUMN_TILE, edge)
            logits = buffer[: heads * height * (right - left)].view(groups, -1, right - left)
            torch.bmm(tile, keys[:, left:right].transpose(1, 2), out=logits)
            logits = logits.view(heads, height, right - left)
            if causal and right > top + 1:
                # Masked before the exponential: a forbidden logit may be far above its row's log-sum-exp.
                start = max(left, top)
                logits[:, :, start - left :].masked_fill_(future[:height, start - top : right - top], -math.inf)
            received[:, left:right] += logits.exp2_().sum(1)
    return received


def _visual(tensor: torch.Tensor, layout: Layout, dim: int = 1) -> torch.Tensor:
    """The visual tokens of a tensor; a view where they are one run."""
    if layout.run is not None:
        return tensor.narrow(dim, layout.run[0], layout.run[1] - layout.run[0])
    return tensor.index_select(dim, layout.visual)
