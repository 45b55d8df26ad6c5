"""What is damaged of a store is named before anything is read of it, and made again on request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.store.format import Shard, StoreError, damaged_files
from harness.store.reader import Store
from harness.store.writer import StoreWriter


def mend(writer: StoreWriter, damaged: Sequence[str], repair: bool) -> None:
    """Drop damaged files, so that the writer wants their pages again; an error unless that was asked for."""
    if damaged and not repair:
        raise StoreError(
            f"damaged in {writer.folder}: {', '.join(damaged)} (the content is not what was written). "
            "Encode just that again with `harness encode --repair`"
        )
    if damaged:
        writer.forget(damaged)


def require_whole(source: Store, files: Iterable[Shard]) -> None:
    """Of a store that another is made from: what is damaged there must not get a checksum that says it is whole."""
    if damaged := damaged_files(source.folder, list(files)):
        raise StoreError(
            f"the store {source.folder} itself is damaged: {', '.join(damaged)} (the content is not what was written). "
            f"To make just that again: {source.manifest.made_again}"
        )
