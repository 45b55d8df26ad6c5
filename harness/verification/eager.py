"""Signals by the textbook: whole attention maps of the layers asked for, summed in float64. Slow, and simple."""

from __future__ import annotations

import harness.compat  # noqa: F401

from collections.abc import Collection
from contextlib import ExitStack
from typing import Any

import torch

from harness.backbones import probe


def attention_maps(model: Any, inputs: Any, layers: Collection[int]) -> dict[int, torch.Tensor]:
    """Maps `[B, H, T, T]` of these layers of the decoder, from transformers' eager attention. Others are let go of."""
    maps: dict[int, torch.Tensor] = {}

    def keep(module: Any, args: Any, output: Any) -> None:
        maps[module.layer_idx] = output[1].double().cpu()

    with ExitStack() as hooks:
        for module in model.modules():
            if type(module).__name__.endswith("Attention") and getattr(module, "layer_idx", None) in layers:
                hooks.callback(module.register_forward_hook(keep).remove)
        model.set_attn_implementation({"text_config": "eager"})
        hooks.callback(probe.attach, model)
        with torch.inference_mode():
            model(**inputs)
    return maps


def eager_signals(
    model: Any, inputs: Any, visual: torch.Tensor, valid: torch.Tensor, layers: Collection[int]
) -> list[dict[str, torch.Tensor]]:
    """For each page the attention signals of these layers, `[layers, N]` float64; padding rows are left out."""
    maps = attention_maps(model, inputs, layers)
    if sorted(maps) != sorted(layers):
        raise RuntimeError(f"eager attention gave maps of layers {sorted(maps)}, not of {sorted(layers)}")
    pages = []
    for page in range(len(visual)):
        v, rows, last = visual[page], valid[page], valid[page].nonzero().max()
        stacked = torch.stack([maps[layer][page] for layer in sorted(maps)])  # [L, H, T, T]
        pages.append(
            {
                "indegree": stacked[:, :, v][..., v].sum(2).mean(1),
                "indegree_max": stacked[:, :, v][..., v].sum(2).amax(1),
                "all_to_visual": stacked[:, :, rows][..., v].sum(2).mean(1),
                "eos": stacked[:, :, last][..., v].mean(1),
            }
        )
    return pages
