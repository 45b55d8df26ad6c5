"""Pages and queries as the arrays of a shard, one item after another; what cannot be kept is named."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from harness.store.encoded_page import EncodedPage
from harness.store.format import StoreError


def rows_of_signals(page_id: str, page: EncodedPage) -> dict[str, int]:
    """The rows of each signal of a page, which is checked: shapes fit together, and signals are numbers."""
    shape = page.vectors.shape
    if page.vectors.ndim != 2 or not shape[0]:
        raise StoreError(f"page {page_id!r}: vectors must be [N, d] with N >= 1, not {list(shape)}")
    if page.grid is not None and page.grid[0] * page.grid[1] != shape[0]:
        raise StoreError(f"page {page_id!r}: a grid of {page.grid} does not hold its {shape[0]} vectors")
    rows = {}
    for name, signal in sorted(page.signals.items()):
        if signal.ndim != 2 or signal.shape[1] != shape[0]:
            raise StoreError(f"page {page_id!r}: signal {name!r} must be [rows, {shape[0]}], not {list(signal.shape)}")
        if not bool(torch.isfinite(signal).all()):
            raise StoreError(f"page {page_id!r}: signal {name!r} contains NaN or infinity")
        rows[name] = signal.shape[0]
    return rows


def page_arrays(ids: Sequence[str], pages: Sequence[EncodedPage], dtype: str) -> dict[str, np.ndarray]:
    """A shard of pages, all with the same signals."""
    names = [f"page {page_id!r}" for page_id in ids]
    prompts = [page.vectors[:0] if page.prompt is None else page.prompt for page in pages]
    arrays = {
        "vectors": _joined([page.vectors for page in pages], names, dtype),
        "offsets": _offsets([len(page.vectors) for page in pages]),
        "prompt": _joined(prompts, names, dtype),
        "prompt_offsets": _offsets([len(prompt) for prompt in prompts]),
        "grids": np.array([page.grid or (0, 0) for page in pages], dtype=np.int32),
    }
    for name in sorted(pages[0].signals):
        per_token = torch.cat([page.signals[name].T for page in pages])
        arrays[f"signal.{name}"] = per_token.to(torch.float32).contiguous().numpy()
    return arrays


def query_arrays(ids: Sequence[str], vectors: Sequence[torch.Tensor], dtype: str) -> dict[str, np.ndarray]:
    names = [f"query {query!r}" for query in ids]
    return {"vectors": _joined(vectors, names, dtype), "offsets": _offsets([len(tensor) for tensor in vectors])}


def _joined(tensors: Sequence[torch.Tensor], names: Sequence[str], dtype: str) -> np.ndarray:
    """All rows in one array, at the store's precision."""
    stored = [tensor.detach().cpu().to(getattr(torch, dtype)) for tensor in tensors]
    for tensor, name in zip(stored, names, strict=True):
        if not bool(torch.isfinite(tensor).all()):
            raise StoreError(f"{name}: vectors contain NaN, infinity, or values beyond {dtype}")
    return torch.cat(stored).contiguous().numpy()


def _offsets(lengths: Sequence[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
