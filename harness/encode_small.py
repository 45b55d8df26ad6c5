"""Encoding with a backbone too small to keep several threads busy: batches are shared among processes instead.

Every process has one thread, so that vectors do not depend on how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from harness.progress import Advance
from harness.store.encoded_page import EncodedPage
from harness.store.writer import StoreWriter
from harness.workers import spread

QUERY_BATCH = 32


def encode_in_processes(
    writer: StoreWriter,
    backbone: Any,
    read: Callable[[str], tuple[Any, Callable[[], str]]],
    pages: Sequence[Sequence[str]],
    queries: Mapping[str, str] | None,
    workers: int,
    advance: Advance,
) -> None:
    """Encode batches of pages, then all queries (None: there already). `read` gives a page by its id, and a function
    that hashes it.
    """
    texts = queries or {}
    ids = list(texts)
    batches = [*pages, *(ids[i : i + QUERY_BATCH] for i in range(0, len(ids), QUERY_BATCH))]

    def encode(batch: int) -> list[Any]:
        if batch >= len(pages):
            return [found.numpy() for found in backbone.encode_queries([texts[query] for query in batches[batch]])]
        inputs = [read(page) for page in batches[batch]]
        encoded = backbone.encode_pages([page for page, _ in inputs])
        return [(_as_arrays(page), digest()) for page, (_, digest) in zip(encoded, inputs, strict=True)]

    _ = backbone.model  # loaded once, before there are several processes
    vectors: list[torch.Tensor] = []
    with spread(encode, range(len(batches)), workers, first_here=False) as results:
        for batch, encoded in enumerate(results):
            if batch >= len(pages):
                vectors += map(torch.from_numpy, encoded)
                continue
            for page, (arrays, digest) in zip(pages[batch], encoded, strict=True):
                writer.add(page, _from_arrays(arrays), image=digest)
            advance(len(encoded))
    if queries is not None:
        writer.add_queries(ids, vectors)


def _as_arrays(page: EncodedPage) -> dict[str, Any]:
    """A page as numpy arrays, which go from process to process as plain bytes."""
    return {
        "vectors": page.vectors.numpy(),
        "grid": page.grid,
        "signals": {name: signal.numpy() for name, signal in page.signals.items()},
        "prompt": None if page.prompt is None else page.prompt.numpy(),
    }


def _from_arrays(arrays: Mapping[str, Any]) -> EncodedPage:
    return EncodedPage(
        torch.from_numpy(arrays["vectors"]),
        arrays["grid"],
        {name: torch.from_numpy(signal) for name, signal in arrays["signals"].items()},
        None if arrays["prompt"] is None else torch.from_numpy(arrays["prompt"]),
    )
