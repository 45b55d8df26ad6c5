"""StoreWriter: makes a store from any source of vectors, in shards that are complete or absent.

    with StoreWriter(folder, identity, page_ids) as writer:
        for page_id in writer.wanted():              # only the pages that are not there yet
            writer.add(page_id, EncodedPage(...))
        writer.add_queries(query_ids, query_vectors)

Killed at any moment, the same lines go on with the first shard that is missing, and the finished store is
byte-identical to one written without interruption.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import safetensors.numpy
import torch

from harness.backbones.contract import EncodedPage
from harness.files import checksum, file_checksum, library_versions, temporary_name, write_atomically
from harness.store.format import (
    LIBRARIES,
    MANIFEST,
    QUERIES,
    VECTOR_DTYPES,
    Manifest,
    Shard,
    StoreError,
    damaged_files,
    read_manifest,
    shard_file,
    write_manifest,
)
from harness.store.lock import FolderLock

SHARD_PAGES = 32


@dataclass(frozen=True)
class _Pending:
    page_id: str
    page: EncodedPage
    image: str


class StoreWriter:
    """Writes one store. `identity` is everything that determines its content; see `Manifest`."""

    def __init__(
        self,
        folder: Path,
        identity: Mapping[str, Any],
        page_ids: Sequence[str],
        *,
        about: Mapping[str, Any] | None = None,
        vector_dtype: str = "float16",
        shard_pages: int = SHARD_PAGES,
    ) -> None:
        if vector_dtype not in VECTOR_DTYPES:
            raise StoreError(f"a store keeps vectors as {' or '.join(VECTOR_DTYPES)}, not {vector_dtype!r}")
        _check_ids(page_ids, "page")
        self.folder = Path(folder)
        self._fresh = Manifest(
            identity=dict(identity),
            about=dict(about or {}),
            libraries=library_versions(LIBRARIES),
            vector_dtype=vector_dtype,
            shard_pages=shard_pages,
            page_ids=tuple(page_ids),
        )
        self.manifest = self._fresh
        self._pending: list[_Pending] = []
        self._lock = FolderLock(self.folder)

    def __enter__(self) -> StoreWriter:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock.acquire()
        for leftover in self.folder.glob(temporary_name(Path("*")).name):
            leftover.unlink()  # the shard that was being written when a run was killed
        if not (self.folder / MANIFEST).is_file():
            write_manifest(self.folder, self._fresh)
            return self
        self.manifest = read_manifest(self.folder)
        if self.manifest.key != self._fresh.key or self.manifest.page_ids != self._fresh.page_ids:
            raise StoreError(
                f"{self.folder} holds a store made with other settings (key {self.manifest.key}, wanted "
                f"{self._fresh.key}); give another folder, or delete it"
            )
        changed = {k: v for k, v in self._fresh.libraries.items() if self.manifest.libraries.get(k) != v}
        if changed and not self.manifest.complete:
            before = {name: self.manifest.libraries.get(name) for name in changed}
            raise StoreError(
                f"{self.folder} was begun with {before} and would go on with {changed}: its halves might differ. "
                "Install those versions to finish it, or delete the folder"
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
        if kind is None and self._pending:
            raise StoreError(
                f"{len(self._pending)} pages from {self._pending[0].page_id!r} on do not fill their shard: "
                "add every page that wanted() names"
            )

    def damaged(self) -> list[str]:
        """The finished files whose content is not what was written, by name."""
        return damaged_files(self.folder, self.manifest)

    def forget(self, files: Iterable[str]) -> None:
        """Drop damaged files, so that `wanted()` names their pages again."""
        self.manifest = self.manifest.without_shards(files)
        write_manifest(self.folder, self.manifest)

    def adopt(self, other: Path) -> int:
        """Link the missing page shards from another finished store of the same pages; how many were taken.

        The caller vouches that the two stores' pages were encoded alike; ids and checksums are compared here.
        """
        theirs, taken = read_manifest(other), 0
        for index, shard in sorted(theirs.shards.items()):
            if index in self.manifest.shards or shard.ids != self.manifest.pages_of(index):
                continue
            target = self.folder / shard.file
            target.unlink(missing_ok=True)
            try:
                os.link(other / shard.file, target)
            except OSError:  # another disk, or one without links
                shutil.copyfile(other / shard.file, target)
            if file_checksum(target) != shard.checksum:
                target.unlink()
                continue
            self.manifest = replace(self.manifest, dim=theirs.dim, signals=theirs.signals).with_shard(index, shard)
            taken += 1
        if taken:
            write_manifest(self.folder, self.manifest)
        return taken

    def wanted(self) -> list[str]:
        """The pages still to be added, in the order they must be added."""
        return [
            page_id
            for shard in range(self.manifest.shard_count)
            if shard not in self.manifest.shards
            for page_id in self.manifest.pages_of(shard)
        ]

    def add(self, page_id: str, page: EncodedPage, *, image: str = "") -> None:
        """Add the next wanted page. `image` is a hash of its decoded pixels, if it has any."""
        shard = next((i for i in range(self.manifest.shard_count) if i not in self.manifest.shards), None)
        ids = () if shard is None else self.manifest.pages_of(shard)
        expected = ids[len(self._pending)] if len(self._pending) < len(ids) else None
        if shard is None or page_id != expected:
            raise StoreError(f"page {page_id!r} was added where {expected!r} was wanted; add pages as wanted() orders")
        self._check(page_id, page)
        self._pending.append(_Pending(page_id, page, image))
        if len(self._pending) == len(ids):
            self._write_shard(shard)

    def add_queries(self, ids: Sequence[str], vectors: Sequence[torch.Tensor]) -> None:
        """Write all query vectors, one `[tokens, d]` tensor a query."""
        _check_ids(ids, "query")
        if len(ids) != len(vectors):
            raise StoreError(f"{len(ids)} query ids came with {len(vectors)} query vectors")
        for query, tensor in zip(ids, vectors, strict=True):
            if tensor.ndim != 2 or tensor.shape[1] != self.manifest.dim:
                raise StoreError(
                    f"query {query!r}: vectors are {list(tensor.shape)}, but the pages have {self.manifest.dim} columns"
                )
        arrays = {
            "vectors": self._half(vectors, [f"query {query!r}" for query in ids]),
            "offsets": _offsets([len(v) for v in vectors]),
        }
        shard = self._write_file(QUERIES, arrays, tuple(ids), ())
        self.manifest = replace(self.manifest, queries=shard)
        write_manifest(self.folder, self.manifest)

    def _check(self, page_id: str, page: EncodedPage) -> None:
        shape = page.vectors.shape
        if page.vectors.ndim != 2 or not shape[0]:
            raise StoreError(f"page {page_id!r}: vectors must be [N, d] with N >= 1, not {list(shape)}")
        if page.grid is not None and page.grid[0] * page.grid[1] != shape[0]:
            raise StoreError(f"page {page_id!r}: a grid of {page.grid} does not hold its {shape[0]} vectors")
        rows = {}
        for name, signal in sorted(page.signals.items()):
            if signal.ndim != 2 or signal.shape[1] != shape[0]:
                raise StoreError(
                    f"page {page_id!r}: signal {name!r} must be [rows, {shape[0]}], not {list(signal.shape)}"
                )
            if not bool(torch.isfinite(signal).all()):
                raise StoreError(f"page {page_id!r}: signal {name!r} contains NaN or infinity")
            rows[name] = signal.shape[0]
        if self.manifest.dim is None:
            self.manifest = replace(self.manifest, dim=shape[1], signals=rows)
        if self.manifest.dim != shape[1] or dict(self.manifest.signals) != rows:
            raise StoreError(
                f"page {page_id!r} has {shape[1]} columns and signals {rows}; the pages before it had "
                f"{self.manifest.dim} and {dict(self.manifest.signals)}"
            )

    def _write_shard(self, index: int) -> None:
        pages = [pending.page for pending in self._pending]
        names = [f"page {pending.page_id!r}" for pending in self._pending]
        prompts = [p.vectors[:0] if p.prompt is None else p.prompt for p in pages]
        arrays = {
            "vectors": self._half([p.vectors for p in pages], names),
            "offsets": _offsets([len(p.vectors) for p in pages]),
            "prompt": self._half(prompts, names),
            "prompt_offsets": _offsets([len(p) for p in prompts]),
            "grids": np.array([p.grid or (0, 0) for p in pages], dtype=np.int32),
        }
        for name in self.manifest.signals:
            per_token = torch.cat([p.signals[name].T for p in pages])
            arrays[f"signal.{name}"] = per_token.to(torch.float32).contiguous().numpy()
        ids = tuple(pending.page_id for pending in self._pending)
        images = tuple(pending.image for pending in self._pending)
        shard = self._write_file(shard_file(index), arrays, ids, images)
        self.manifest = self.manifest.with_shard(index, shard)
        write_manifest(self.folder, self.manifest)
        self._pending = []

    def _write_file(
        self, name: str, arrays: dict[str, np.ndarray], ids: tuple[str, ...], images: tuple[str, ...]
    ) -> Shard:
        data = safetensors.numpy.save(arrays)
        kind = "pages" if images else "queries"
        write_atomically(self.folder / name, data, f"{kind} {ids[0]!r} to {ids[-1]!r}, ")
        return Shard(name, len(data), checksum(data), int(arrays["offsets"][-1]), ids, images)

    def _half(self, tensors: Sequence[torch.Tensor], names: Sequence[str]) -> np.ndarray:
        dtype = getattr(torch, self.manifest.vector_dtype)
        stored = [tensor.detach().cpu().to(dtype) for tensor in tensors]
        for tensor, name in zip(stored, names, strict=True):
            if not bool(torch.isfinite(tensor).all()):
                raise StoreError(
                    f"{name}: vectors contain NaN, infinity, or values beyond {self.manifest.vector_dtype}"
                )
        return torch.cat(stored).contiguous().numpy() if stored else np.zeros((0, self.manifest.dim or 0), np.float16)


def _offsets(lengths: Sequence[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _check_ids(ids: Sequence[str], kind: str) -> None:
    if not ids:
        raise StoreError(f"a store needs at least one {kind}")
    seen = set()
    for name in ids:
        if name in seen:
            raise StoreError(f"the {kind} id {name!r} occurs twice; ids must be unique")
        seen.add(name)
