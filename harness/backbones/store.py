"""store=FOLDER: a retriever that is known by its vectors alone, those of a store that `harness import-vectors` made.

It encodes nothing. Pages and queries of a benchmark are looked up by their ids, so that everything that reads encoded
pages (evaluate, calibrate, experiment, submit) works without the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from harness.backbones.contract import Card, Options, backbone
from harness.store.format import StoreError
from harness.store.reader import Store


class StoreBackbone:
    """The vectors of a finished store."""

    def __init__(self, store: Store) -> None:
        self.store, self.card = store, store_card(store)

    def encode_pages(self, pages: Sequence[Any], /) -> NoReturn:
        self._refuse("pages")

    def encode_queries(self, texts: Sequence[str]) -> NoReturn:
        self._refuse("queries")

    def _refuse(self, what: str) -> NoReturn:
        raise StoreError(f"the store {self.store.folder} holds vectors and no model, so it cannot encode other {what}")


@backbone("store", checkpoint="vectors that were imported: store=FOLDER", signals=())
def load(checkpoint: str, options: Options) -> StoreBackbone:
    if "store=FOLDER" in checkpoint:
        raise StoreError(
            "--backbone store needs the folder of a store: store=FOLDER (`harness import-vectors` makes one)"
        )
    return StoreBackbone(Store(Path(checkpoint)))


def store_card(store: Store) -> Card:
    """Of an encoded store its own card, of an imported one what its vectors show."""
    identity = store.manifest.identity
    if known := identity.get("backbone"):
        try:
            return Card(**{**known, "checkpoint": str(store.folder), "signals": tuple(known["signals"])})
        except (TypeError, KeyError) as error:
            raise StoreError(f"{store.folder} does not say which backbone made it ({error})") from error
    return Card(
        name=str(identity.get("imported", {}).get("name") or store.folder.resolve().name),
        checkpoint=str(store.folder),
        revision=store.key,
        layers=max(store.signals.values(), default=0),
        heads=0,
        dim=store.dim,
        dtype=store.manifest.vector_dtype,
        signals=tuple(store.signals),
        signals_from="imported" if store.signals else "nothing",
        page_prompt="not stated: the vectors were imported",
        token_layout="not stated",
        eos_token="",
        query_template="not stated",
    )
