"""Attention signals captured while a forward pass streams by, exactly and without ever holding an attention map.

transformers looks up its attention function by name. We register one that computes its output with the very kernel
SDPA would have chosen, and on the side adds up what each visual token receives. On the CPU the flash kernel returns
the log-sum-exp of every row, so a column sum needs one more QK^T in small tiles, over visual columns only:

    received_j = sum_i exp(scale * q_i . k_j - lse_i)        (SAP, Eq. 2)

Where the kernel does not give the log-sum-exp (other devices, unusual masks) rows are processed block by block.
Logits and sums are float32 whatever the weights are: bfloat16 sums lose the ranking of patches.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch

from pruners.core.errors import PruneBoardError

ATTENTION_NAME = "pruneboard_probe"
ATTENTION_SIGNALS = ("indegree", "indegree_max", "all_to_visual", "eos")

ROW_TILE, COLUMN_TILE = 128, 256  # with 8 heads a tile of logits is 1 MB: larger ones leave the cache
BLOCK_BYTES = 32 * 2**20  # logits held at once by the portable row-block path

LOG2_E = math.log2(math.e)

FULL, CAUSAL, OTHER = "full", "causal", "other"
"""Which visual rows see which visual columns. Only `OTHER` needs the mask itself."""


@dataclass(frozen=True)
class Layout:
    """Where the tokens of one page are: visual ones, other valid ones (prompt, specials), and the last valid one."""

    visual: torch.Tensor
    others: torch.Tensor
    last: int


class Recorder:
    """Gathers the signals of the pages of one forward pass, layer by layer."""

    def __init__(self, visual: torch.Tensor, valid: torch.Tensor) -> None:
        valid, visual = valid.bool(), visual.bool()
        self.layouts = []
        for row in range(len(visual)):
            tokens = valid[row].nonzero().flatten()
            self.layouts.append(
                Layout(
                    visual=(visual[row] & valid[row]).nonzero().flatten(),
                    others=(~visual[row] & valid[row]).nonzero().flatten(),
                    last=int(tokens[-1]),
                )
            )
        self._layers: dict[int, list[dict[str, torch.Tensor]]] = {}
        self._patterns: dict[int, str] = {}
        self._mask: torch.Tensor | None = None

    def record(
        self,
        layer: int,
        query: torch.Tensor,
        key: torch.Tensor,
        *,
        scale: float,
        mask: torch.Tensor | None,
        causal: bool,
        lse: torch.Tensor | None,
    ) -> None:
        """Add one layer: query [B, H, T, d], key [B, Hkv, T, d], mask [B, 1, T, T] (True: may attend) or None."""
        if layer in self._layers:
            raise PruneBoardError(f"decoder layer {layer} ran twice in one forward pass; its signals are ambiguous")
        pages = []
        for page, layout in enumerate(self.layouts):
            rows = _Rows(query[page], key[page], scale, None if mask is None else mask[page, 0], causal)
            row_lse = None if lse is None else lse[page]
            pages.append(_page_signals(rows, layout, self._pattern(page, mask, causal), row_lse))
        self._layers[layer] = pages

    def signals(self, layers: int) -> list[dict[str, torch.Tensor]]:
        """For each page, every signal as a float32 tensor [layers, N] on the CPU."""
        if sorted(self._layers) != list(range(layers)):
            raise PruneBoardError(
                f"attention was captured for layers {sorted(self._layers)} of {layers}; "
                "this model's decoder does not go through transformers' attention interface"
            )
        return [
            {
                name: torch.stack([self._layers[layer][page][name] for layer in range(layers)]).cpu()
                for name in ATTENTION_SIGNALS
            }
            for page in range(len(self.layouts))
        ]

    def _pattern(self, page: int, mask: torch.Tensor | None, causal: bool) -> str:
        if mask is None:
            return CAUSAL if causal else FULL
        if self._mask is not mask:  # the layers of a forward pass share one mask: look at it once
            self._mask, self._patterns = mask, {}
        if page not in self._patterns:
            self._patterns[page] = _pattern_of(mask[page, 0], self.layouts[page].visual)
        return self._patterns[page]


_recorder: ContextVar[Recorder | None] = ContextVar("recorder", default=None)


@contextmanager
def capturing(visual: torch.Tensor, valid: torch.Tensor) -> Iterator[Recorder]:
    """Within this block every probed forward pass over the given batch (`[B, T]` masks) is recorded."""
    recorder = Recorder(visual, valid)
    token = _recorder.set(recorder)
    try:
        yield recorder
    finally:
        _recorder.reset(token)


def register() -> None:
    """Make the probe known to transformers."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(ATTENTION_NAME, probed_attention)
    # Without a mask function of the same name transformers passes no mask at all, silently.
    AttentionMaskInterface.register(ATTENTION_NAME, sdpa_mask)


def attach(model: torch.nn.Module) -> None:
    """Route the text decoder of `model` through the probe. The vision tower keeps plain SDPA."""
    register()
    model.set_attn_implementation({"text_config": ATTENTION_NAME})  # type: ignore[operator]


def probed_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """transformers' SDPA attention, bit for bit; records the layer when a recorder is listening."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    recorder = _recorder.get()
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    causal = bool(causal) and attention_mask is None and query.shape[2] > 1
    lse = None
    if recorder is not None and dropout == 0.0 and _has_flash_with_lse(query, key, value, attention_mask, causal):
        output, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            query, key, value, 0.0, causal, attn_mask=_additive(attention_mask, query.dtype), scale=scale
        )
        output = output.transpose(1, 2).contiguous()
    else:
        output, _ = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout, scaling, is_causal, **kwargs
        )
    if recorder is not None:
        layer = module.layer_idx
        recorder.record(layer, query, key, scale=scale, mask=attention_mask, causal=causal, lse=lse)  # type: ignore[arg-type]
    return output, None


def _has_flash_with_lse(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, causal: bool
) -> bool:
    """Whether SDPA itself would run the CPU flash kernel here, so that calling it directly changes no bit."""
    if query.device.type != "cpu" or (mask is not None and mask.dtype != torch.bool):
        return False
    choice = torch._fused_sdp_choice(
        query, key, value, attn_mask=mask, is_causal=causal, enable_gqa=query.shape[1] != key.shape[1]
    )
    return choice == torch.nn.attention.SDPBackend.FLASH_ATTENTION.value


def _additive(mask: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor | None:
    """The float mask SDPA makes of a boolean one."""
    if mask is None:
        return None
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, -math.inf)


def _pattern_of(mask: torch.Tensor, visual: torch.Tensor) -> str:
    full = causal = True
    position = torch.arange(len(visual), device=mask.device)
    for start in range(0, len(visual), 512):
        block = mask[visual[start : start + 512]][:, visual]
        full = full and bool(block.all())
        causal = causal and bool((block == (position <= position[start : start + 512, None])).all())
    return FULL if full else CAUSAL if causal else OTHER


@dataclass(frozen=True)
class _Rows:
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


def _page_signals(rows: _Rows, layout: Layout, pattern: str, lse: torch.Tensor | None) -> dict[str, torch.Tensor]:
    visual = layout.visual
    if lse is not None and pattern != OTHER:
        from_visual = _received_by_tiles(rows, visual, lse[:, visual], causal=pattern == CAUSAL)
    else:
        from_visual = sum(
            (block[:, :, visual].sum(1) for block in rows.attention(visual)),
            start=torch.zeros(rows.query.shape[0], len(visual), device=visual.device),
        )
    from_all = from_visual.clone()
    for block in rows.attention(layout.others):  # a few prompt tokens: cheap, and the last of all is among them
        from_all += block[:, :, visual].sum(1)
    (last,) = rows.attention(torch.tensor([layout.last], device=visual.device))
    return {
        "indegree": from_visual.mean(0),
        "indegree_max": from_visual.amax(0),
        "all_to_visual": from_all.mean(0),
        "eos": last[:, 0, visual].mean(0),
    }


def _received_by_tiles(rows: _Rows, visual: torch.Tensor, lse: torch.Tensor, *, causal: bool) -> torch.Tensor:
    """Sum over visual rows of each visual column, [H, N], from the rows' log-sum-exp.

    The log-sum-exp rides along as one more column of the product ([q, -lse] . [k, 1]), all in base two, whose
    exponential is the faster one; one buffer serves all tiles.
    """
    query, key = _take(rows.query, visual), _take(rows.key, visual)
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


def _take(tensor: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """`tensor[:, tokens]`, as a view when the tokens are one run (they are, except for split images)."""
    first, count = int(tokens[0]), len(tokens)
    if int(tokens[-1]) - first + 1 == count:
        return tensor[:, first : first + count]
    return tensor[:, tokens]
