"""Ink: how much a patch's pixels vary, the one signal that needs no model.

The standard deviation of the luma (Rec. 601, 0 to 1) of the pixels behind each visual token, taken from the very
pixel values the model is given, so that resizing and cropping are the model's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

_LUMA = torch.tensor([0.299, 0.587, 0.114])


def luma(pixels: torch.Tensor, image_processor: Any) -> torch.Tensor:
    """Undo the normalisation of channel-first pixels `[..., 3, H, W]` and take their luma, `[..., H, W]`."""
    share = _LUMA[:, None, None]
    pixels = pixels.float().cpu()
    if not getattr(image_processor, "do_normalize", True):
        return (pixels * share).sum(-3)
    mean, std = (_channels(getattr(image_processor, name)) for name in ("image_mean", "image_std"))
    return (pixels * std).add_(mean).mul_(share).sum(-3)  # in place: a page of pixels is 14 MB


def ink_of_grid(pixels: torch.Tensor, grid: tuple[int, int], image_processor: Any) -> torch.Tensor:
    """Ink of an image `[3, H, W]` cut into `grid` (rows, cols) cells, row by row: `[1, rows * cols]`.

    Pixels beyond the last whole cell (an image side that is no multiple of the patch) belong to no patch.
    """
    rows, cols = grid
    grey = luma(pixels, image_processor)
    height, width = grey.shape[0] // rows, grey.shape[1] // cols
    cells = grey[: rows * height, : cols * width].reshape(rows, height, cols, width).permute(0, 2, 1, 3)
    return cells.reshape(rows * cols, -1).std(dim=1, correction=0)[None]


def ink_of_flat_patches(patches: torch.Tensor, patch_size: int, per_token: int, image_processor: Any) -> torch.Tensor:
    """Ink of Qwen's flattened patches `[P, 3 * frames * p * p]`, `per_token` consecutive ones to a visual token."""
    pixels = patches.reshape(patches.shape[0], 3, -1, patch_size)  # frames of a still are equal: fold them into rows
    grey = luma(pixels, image_processor)
    return grey.reshape(patches.shape[0] // per_token, -1).std(dim=1, correction=0)[None]


def _channels(values: Sequence[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32)[:, None, None]
