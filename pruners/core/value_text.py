"""A value as text that is the same in every process and tells any two values apart: what is hashed of constants that a
method's code holds, and of what it learned."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch


def value_text(value: Any, other: Callable[[Any], str | None] = lambda value: None) -> str | None:
    """Of numbers, texts, arrays, tensors and collections of these; of other kinds what `other` says, None: nothing."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return repr(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [value_text(item, other) or "?" for item in value]
        return f"{type(value).__name__}{items if isinstance(value, (list, tuple)) else sorted(items)}"
    if isinstance(value, dict):
        return repr([(value_text(key, other) or "?", value_text(item, other) or "?") for key, item in value.items()])
    if isinstance(value, torch.Tensor):
        data = value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()  # numpy knows no bfloat16
        return f"{value.dtype} {tuple(value.shape)} {hashlib.sha256(data.tobytes()).hexdigest()}"
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    return other(value)
