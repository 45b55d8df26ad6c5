"""Reading a store: files are memory-mapped, a page is a slice, and opening reads the manifest only."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from harness.store.format import Shard, StoreError, damaged_files
from harness.store.sidecar import read_manifest
from pruners.core.page import Page

OPEN = 64
"""Files that are mapped at once. A million pages lie in thirty thousand, and what is mapped counts as memory."""


class Store:
    """A finished store. `store.page(i)` is what a pruner sees; `store.query(i)` a query's vectors `[tokens, d]`."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.manifest = read_manifest(self.folder)
        if not self.manifest.complete:
            done = sum(len(self.manifest.pages_of(index)) for index in self.manifest.shards)
            raise StoreError(
                f"{self.folder} is not finished ({done} of {len(self.manifest.page_ids)} pages); "
                "run the `harness encode` that began it again: it goes on where it was"
            )
        with os.scandir(self.folder) as entries:  # one look at the folder instead of one at each of its files
            names = {entry.name: entry for entry in entries}
        for shard in self.manifest.files:
            if shard.file not in names or names[shard.file].stat().st_size != shard.bytes:
                path = self.folder / shard.file
                raise StoreError(f"{path} is missing or cut short; to make it again: {self.manifest.made_again}")
        opened = self.folder  # not `self`, which would wait for the garbage collector to let its files go
        self._opened = lru_cache(OPEN)(lambda file: _OpenShard(opened / file))

    def __reduce__(self) -> tuple[type[Store], tuple[Path]]:
        """Sent to a worker process as its folder; the worker maps the files itself."""
        return Store, (self.folder,)

    def __len__(self) -> int:
        return len(self.manifest.page_ids)

    @property
    def page_ids(self) -> tuple[str, ...]:
        return self.manifest.page_ids

    @property
    def query_ids(self) -> tuple[str, ...]:
        return self._queries.ids

    @property
    def key(self) -> str:
        return self.manifest.key

    @property
    def dim(self) -> int:
        return self.manifest.dim or 0

    @property
    def mean_vectors(self) -> float:
        """Vectors of a page, on average."""
        return sum(shard.vectors for shard in self.manifest.shards.values()) / len(self)

    @property
    def signals(self) -> dict[str, int]:
        """The signals there are, with their number of rows (layers)."""
        return dict(self.manifest.signals)

    @property
    def image_hashes(self) -> tuple[str, ...]:
        """Of each page's decoded pixels; empty where there were none."""
        found: list[str] = []
        for index, shard in sorted(self.manifest.shards.items()):
            count = len(self.manifest.pages_of(index))
            images = shard.images.split("\n") if shard.images else [""] * count
            if len(images) != count:
                raise StoreError(f"{self.folder}: {len(images)} image hashes for the {count} pages of {shard.file}")
            found += images
        return tuple(found)

    def page(self, index: int) -> Page:
        shard, row = self._locate(index)
        start, stop = self._span(shard, "offsets", row)
        grid = self._slice(shard, "grids", row, row + 1)[0].tolist()
        return Page(
            id=self.page_ids[index],
            # copies, also where no conversion makes one: whoever writes into a page must not write into the mapped file
            vectors=self._slice(shard, "vectors", start, stop).to(torch.float32, copy=True),
            grid=(grid[0], grid[1]) if any(grid) else None,
            signals={
                name: self._slice(shard, f"signal.{name}", start, stop).T.clone(memory_format=torch.contiguous_format)
                for name in self.manifest.signals
            },
        )

    def pages(self) -> Iterator[Page]:
        return (self.page(index) for index in range(len(self)))

    def vectors(self, index: int) -> torch.Tensor:
        """The vectors of a page as they are on disk, for those who need nothing else."""
        shard, row = self._locate(index)
        return self._slice(shard, "vectors", *self._span(shard, "offsets", row))

    def prompt(self, index: int) -> torch.Tensor:
        """Vectors of a page's prompt and special tokens, which profile `native` indexes too; `[0, d]` if not kept."""
        shard, row = self._locate(index)
        return self._slice(shard, "prompt", *self._span(shard, "prompt_offsets", row)).float()

    def query(self, index: int) -> torch.Tensor:
        return self._slice(self._queries, "vectors", *self._span(self._queries, "offsets", index)).float()

    def verify(self) -> list[str]:
        """Read everything and compare checksums; the names of damaged files."""
        return damaged_files(self.folder, self.manifest.files)

    def files_of(self, pages: Iterable[int], *, queries: bool) -> list[Shard]:
        """The files in which these pages lie, and with `queries` that of the queries."""
        shards = sorted({index // self.manifest.shard_pages for index in pages})
        return [*(self.manifest.shards[index] for index in shards), *([self._queries] if queries else [])]

    @cached_property
    def _queries(self) -> Shard:
        assert self.manifest.queries is not None  # a store is complete once it is open
        return self.manifest.queries

    def _locate(self, index: int) -> tuple[Shard, int]:
        if not 0 <= index < len(self):
            raise IndexError(f"page {index} of a store of {len(self)}")
        return self.manifest.shards[index // self.manifest.shard_pages], index % self.manifest.shard_pages

    def _slice(self, shard: Shard, name: str, start: int, stop: int) -> torch.Tensor:
        return self._opened(shard.file).tensor(name)[start:stop]

    def _span(self, shard: Shard, name: str, row: int) -> tuple[int, int]:
        offsets = self._opened(shard.file).offsets(name)
        return offsets[row], offsets[row + 1]


def find_store(root: Path, key: str) -> Store:
    """The store of this key in a folder of stores."""
    folders = sorted(root.glob(f"*--{key}"))
    if not folders:
        raise StoreError(f"there is no store {key} in {root}; name the folder of stores with --store")
    return Store(folders[0])


class _OpenShard:
    """A mapped file, and what was looked up in it."""

    def __init__(self, path: Path) -> None:
        self._file: Any = safe_open(path, framework="pt").__enter__()
        self._tensors: dict[str, torch.Tensor] = {}
        self._offsets: dict[str, list[int]] = {}

    def tensor(self, name: str) -> torch.Tensor:
        """A view of the file: slices of it are far cheaper than safetensors' own."""
        if name not in self._tensors:
            self._tensors[name] = self._file.get_tensor(name)
        return self._tensors[name]

    def offsets(self, name: str) -> list[int]:
        if name not in self._offsets:
            self._offsets[name] = self._file.get_tensor(name).tolist()
        return self._offsets[name]
