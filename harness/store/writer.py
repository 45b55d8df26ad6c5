"""StoreWriter: makes a store from any source of vectors, in shards that are complete or absent.

    with StoreWriter(folder, identity, page_ids) as writer:
        for page_id in writer.wanted():              # only the pages that are not there yet
            writer.add(page_id, EncodedPage(...))
        writer.add_queries(query_ids, query_vectors)

Killed at any moment, the same lines go on with the first shard that is missing, and the finished store is
byte-identical to one written without interruption. With `part=Part(3, 8)` it writes the third of eight parts, while
other processes write the others; whoever is last finishes the store.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import safetensors.numpy
import torch
from filelock import FileLock

from harness.files import checksum, file_checksum, library_versions, temporary_files, write_atomically
from harness.store.arrays import page_arrays, query_arrays, rows_of_signals
from harness.store.encoded_page import EncodedPage
from harness.store.format import (
    LIBRARIES,
    MANIFEST,
    QUERIES,
    VECTOR_DTYPES,
    Manifest,
    Shard,
    StoreError,
    damaged_files,
    read_manifest_file,
    shard_file,
    write_manifest,
)
from harness.store.part import WHOLE, Part, gate, remove_locks, take
from harness.store.sidecar import read_manifest, sidecar, sidecars, with_sidecars, write_sidecar

SHARD_PAGES = 32


@dataclass(frozen=True)
class _Pending:
    page_id: str
    page: EncodedPage
    image: str


class StoreWriter:
    """Writes one store, or a part of it. `identity` is everything that determines its content; see `Manifest`."""

    def __init__(
        self,
        folder: Path,
        identity: Mapping[str, Any],
        page_ids: Sequence[str],
        *,
        about: Mapping[str, Any] | None = None,
        vector_dtype: str = "float16",
        shard_pages: int = SHARD_PAGES,
        part: Part = WHOLE,
    ) -> None:
        if vector_dtype not in VECTOR_DTYPES:
            raise StoreError(f"a store keeps vectors as {' or '.join(VECTOR_DTYPES)}, not {vector_dtype!r}")
        _check_ids(page_ids, "page")
        self.folder, self.part = Path(folder), part
        self._fresh = Manifest(
            identity=dict(identity),
            about=dict(about or {}),
            libraries=library_versions(LIBRARIES),
            vector_dtype=vector_dtype,
            shard_pages=shard_pages,
            page_ids=tuple(page_ids),
        )
        self.manifest = self._fresh
        """What is settled, and what is finished of this part (of a finished store: everything)."""
        self._shards = part.shards(self._fresh.shard_count)
        self._missing: list[int] = []  # the next one last
        self._pending: list[_Pending] = []
        self._lock: FileLock | None = None

    def __enter__(self) -> StoreWriter:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not self._is_finished():
                with gate(self.folder):
                    self._begin()
        except OSError as error:
            raise StoreError(f"the store {self.folder} cannot be written: {error.strerror or error}") from error
        self._look()
        return self

    def _is_finished(self) -> bool:
        """A finished store needs neither locks nor a place to write; what a killed process left there is removed."""
        if not (self.folder / MANIFEST).is_file():
            return False
        self.manifest = self._checked(read_manifest_file(self.folder))
        if self.manifest.complete:
            with suppress(OSError):  # another's folder, which can only be read
                self._tidy()
        return self.manifest.complete

    def _begin(self) -> None:
        if not (self.folder / MANIFEST).is_file():
            write_manifest(self.folder, self._fresh)
        begun = self._checked(read_manifest_file(self.folder))
        if not begun.complete:
            self._lock = take(self.folder, self.part, begun.shard_count)
            try:
                begun = with_sidecars(self.folder, begun, self._shards)
            except StoreError:
                self._lock.release()
                raise
            files = [shard_file(index) for index in self._shards]
            for leftover in temporary_files(self.folder, {*files, *map(sidecar, files)}):
                leftover.unlink(missing_ok=True)  # the shard that was being written when this part was killed
        self.manifest = begun

    def _checked(self, found: Manifest) -> Manifest:
        """A store is only ever gone on with by the settings and libraries that began it."""
        if found.key != self._fresh.key or found.page_ids != self._fresh.page_ids:
            raise StoreError(
                f"{self.folder} holds a store made with other settings (key {found.key}, wanted "
                f"{self._fresh.key}); give another folder, or delete it"
            )
        changed = {k: v for k, v in self._fresh.libraries.items() if found.libraries.get(k) != v}
        if changed and not found.complete:
            before = {name: found.libraries.get(name) for name in changed}
            raise StoreError(
                f"{self.folder} was begun with {before} and would go on with {changed}: its halves might differ. "
                "Install those versions to finish it, or delete the folder"
            )
        return found

    def _look(self) -> None:
        self._missing = [index for index in reversed(self._shards) if index not in self.manifest.shards]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lock, self._lock = self._lock, None
        if lock is None:
            return
        try:
            if kind is None and self._pending:
                raise StoreError(
                    f"{len(self._pending)} pages from {self._pending[0].page_id!r} on do not fill their shard: "
                    "add every page that wanted() names"
                )
            if kind is None and not self._missing:
                with gate(self.folder):
                    self._finish()
        finally:
            lock.release()

    def _finish(self) -> None:
        """Write the manifest if all parts are there: from what is on disk, so that it is the same whoever does it."""
        begun = read_manifest_file(self.folder)
        if len(begun.files) + len(sidecars(self.folder)) <= begun.shard_count:  # shards and queries are one more
            return
        if not (found := read_manifest(self.folder)).complete:
            return
        if not begun.complete:
            write_manifest(self.folder, found)
        self.manifest = found
        self._tidy()

    def _tidy(self) -> None:
        """Nothing beside a finished store that was only needed to make it."""
        for name, _ in sidecars(self.folder):
            (self.folder / name).unlink(missing_ok=True)
        for leftover in temporary_files(self.folder):
            leftover.unlink(missing_ok=True)
        remove_locks(self.folder)

    def damaged(self) -> list[str]:
        """The finished files of this part whose content is not what was written, by name."""
        ours = {shard_file(index) for index in self._shards} | {QUERIES}
        return damaged_files(self.folder, [shard for shard in self.manifest.files if shard.file in ours])

    def forget(self, files: Iterable[str]) -> None:
        """Drop damaged files, so that `wanted()` names their pages again."""
        if self.part != WHOLE:
            raise StoreError(f"{self.folder} is mended as a whole: leave --part away")
        gone = set(files) & {shard.file for shard in self.manifest.files}
        if not gone:
            return
        with gate(self.folder):
            if self._lock is None:  # the store was finished
                self._lock = take(self.folder, self.part, self.manifest.shard_count)
            kept = {index: shard for index, shard in self.manifest.shards.items() if shard.file not in gone}
            queries = None if QUERIES in gone else self.manifest.queries
            self.manifest = replace(self.manifest, shards=kept, queries=queries)
            write_manifest(self.folder, self.manifest)
            for file in gone:
                (self.folder / sidecar(file)).unlink(missing_ok=True)
        self._look()

    def adopt(self, other: Path, image: Callable[[str], str] | None = None) -> int:
        """Link the missing page shards from another store of the same pages; how many were taken.

        The caller vouches that the two stores' pages were encoded alike; ids and checksums are compared here. `image`
        gives the hash of a page by its id, where the other store has none.
        """
        theirs, taken = read_manifest(other), 0
        if theirs.shard_pages != self.manifest.shard_pages or theirs.vector_dtype != self.manifest.vector_dtype:
            return 0
        for index in self._missing:
            shard, ids = theirs.shards.get(index), self.manifest.pages_of(index)
            if shard is None or theirs.pages_of(index) != ids:
                continue
            target = self.folder / shard.file
            target.unlink(missing_ok=True)
            if not _link_or_copy(other / shard.file, target) or file_checksum(target) != shard.checksum:
                target.unlink(missing_ok=True)
                continue
            self.manifest = replace(self.manifest, dim=theirs.dim, signals=theirs.signals)
            self._commit(index, replace(shard, images="\n".join(map(image, ids))) if image else shard)
            taken += 1
        self._look()
        return taken

    @property
    def wants_queries(self) -> bool:
        """The first part writes the queries."""
        return self.manifest.queries is None and self.part.number == 1

    def wanted_shards(self) -> list[tuple[str, ...]]:
        """The pages still to be added, shard by shard."""
        return [self.manifest.pages_of(index) for index in reversed(self._missing)]

    def wanted(self) -> list[str]:
        """The pages still to be added, in the order they must be added."""
        return [page_id for pages in self.wanted_shards() for page_id in pages]

    def add(self, page_id: str, page: EncodedPage, *, image: str = "") -> None:
        """Add the next wanted page. `image` is a hash of its decoded pixels, if it has any."""
        ids = self.manifest.pages_of(self._missing[-1]) if self._missing else ()
        expected = ids[len(self._pending)] if ids else None
        if page_id != expected:
            raise StoreError(f"page {page_id!r} was added where {expected!r} was wanted; add pages as wanted() orders")
        self._check(page_id, page)
        self._pending.append(_Pending(page_id, page, image))
        if len(self._pending) == len(ids):
            self._write_shard(self._missing[-1])
            self._missing.pop()

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
        arrays = query_arrays(ids, vectors, self.manifest.vector_dtype)
        self._commit(None, replace(self._write_file(QUERIES, arrays, ids), ids=tuple(ids)))

    def _check(self, page_id: str, page: EncodedPage) -> None:
        rows, dim = rows_of_signals(page_id, page), page.vectors.shape[1]
        if self.manifest.dim is None:
            self.manifest = replace(self.manifest, dim=dim, signals=rows)
        if self.manifest.dim != dim or dict(self.manifest.signals) != rows:
            raise StoreError(
                f"page {page_id!r} has {dim} columns and signals {rows}; the pages before it had "
                f"{self.manifest.dim} and {dict(self.manifest.signals)}"
            )

    def _write_shard(self, index: int) -> None:
        ids = [pending.page_id for pending in self._pending]
        arrays = page_arrays(ids, [pending.page for pending in self._pending], self.manifest.vector_dtype)
        shard = self._write_file(shard_file(index), arrays, ids)
        images = [pending.image for pending in self._pending]
        self._commit(index, replace(shard, images="\n".join(images) if any(images) else ""))
        self._pending = []

    def _write_file(self, name: str, arrays: dict[str, np.ndarray], ids: Sequence[str]) -> Shard:
        data = safetensors.numpy.save(arrays)
        kind = "queries" if name == QUERIES else "pages"
        what = f"{kind} {ids[0]!r} to {ids[-1]!r}, "
        write_atomically(self.folder / name, data, what, sync_folder=False)  # that its sidecar sees to
        return Shard(name, len(data), checksum(data), int(arrays["offsets"][-1]))

    def _commit(self, index: int | None, shard: Shard) -> None:
        """From here on the shard (None: the queries) is there."""
        write_sidecar(self.folder, self.manifest, shard)
        if index is None:
            self.manifest = replace(self.manifest, queries=shard)
        else:
            self.manifest.shards[index] = shard


def _link_or_copy(there: Path, here: Path) -> bool:
    """Whether it worked: what cannot be had is made anew, and whatever is wrong here is said then."""
    try:
        os.link(there, here)
    except OSError:  # another disk, or one without links
        try:
            shutil.copyfile(there, here)
        except OSError:
            return False
    return True


def _check_ids(ids: Sequence[str], kind: str) -> None:
    if not ids:
        raise StoreError(f"a store needs at least one {kind}")
    seen = set()
    for name in ids:
        if name in seen:
            raise StoreError(f"the {kind} id {name!r} occurs twice; ids must be unique")
        seen.add(name)
