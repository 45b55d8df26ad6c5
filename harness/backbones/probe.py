"""Attention signals captured while a forward pass streams by, exactly and without ever holding an attention map.

transformers looks up its attention function by name. We register one that computes its output with the very kernel
SDPA would have chosen, so that not a bit of the vectors changes, and hands queries, keys and (on the CPU, where the
flash kernel returns it) the rows' log-sum-exp to `attention_sums.py`. Only the text decoder is routed through it.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any

import torch

from harness.backbones.attention_sums import CAUSAL, FULL, Layout, TileRows, batch_signals, page_signals, pattern_of
from pruners.core.errors import PruneBoardError

ATTENTION_NAME = "pruneboard_probe"
ATTENTION_SIGNALS = ("indegree", "indegree_max", "all_to_visual", "eos")


class Recorder:
    """Gathers the signals of the pages of one forward pass, layer by layer."""

    def __init__(self, visual: torch.Tensor, valid: torch.Tensor) -> None:
        self.valid, self.visual = valid.bool(), visual.bool() & valid.bool()
        self._layers: dict[int, list[dict[str, torch.Tensor]]] = {}
        self._batches: dict[int, dict[str, torch.Tensor]] = {}
        self._patterns: dict[int, str] = {}
        self._mask: torch.Tensor | None = None

    @property
    def all_at_once(self) -> bool:
        """On a GPU all pages of a batch at once; on the CPU one after the other, from the flash kernel's sums."""
        return self.visual.device.type != "cpu"

    @cached_property
    def layouts(self) -> list[Layout]:
        pairs = zip(self.visual, self.valid, strict=True)
        return [Layout(visual.nonzero().flatten(), (~visual & valid).nonzero().flatten()) for visual, valid in pairs]

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
        if layer in self._layers or layer in self._batches:
            raise PruneBoardError(f"decoder layer {layer} ran twice in one forward pass; its signals are ambiguous")
        if self.all_at_once:
            self._batches[layer] = batch_signals(query, key, scale, mask, causal, self.visual, self.valid)
            return
        pages = []
        for page, layout in enumerate(self.layouts):
            rows = TileRows(query[page], key[page], scale, None if mask is None else mask[page, 0], causal)
            row_lse = None if lse is None else lse[page]
            pages.append(page_signals(rows, layout, self._pattern(page, mask, causal), row_lse))
        self._layers[layer] = pages

    def signals(self, layers: Sequence[int]) -> list[dict[str, torch.Tensor]]:
        """For each page, every signal of these layers, which must be all that ran: float32 [layers, N] on the CPU."""
        captured = sorted(self._batches or self._layers)
        if captured != list(layers):
            raise PruneBoardError(
                f"attention was captured for layers {captured}, not for {list(layers)}; "
                "this model's decoder does not go through transformers' attention interface"
            )
        if self.all_at_once:
            stacked = {
                name: torch.stack([self._batches[layer][name] for layer in layers]).cpu() for name in ATTENTION_SIGNALS
            }
            return [
                {name: signal[:, page, columns] for name, signal in stacked.items()}
                for page, columns in enumerate(self.visual.cpu())
            ]
        return [
            {
                name: torch.stack([self._layers[layer][page][name] for layer in layers]).cpu()
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
            self._patterns[page] = pattern_of(mask[page, 0], self.layouts[page].visual)
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


def attach_encoder(encoder: torch.nn.Module) -> None:
    """Route a plain text encoder through the probe, and number its attention modules where it did not do so itself."""
    register()
    encoder.set_attn_implementation(ATTENTION_NAME)  # type: ignore[operator]
    attentions = (module for module in encoder.modules() if hasattr(module, "is_causal"))
    for layer, module in enumerate(attentions):
        if getattr(module, "layer_idx", None) is None:
            module.layer_idx = layer  # type: ignore[assignment]


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
