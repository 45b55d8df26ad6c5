"""The layout of a store on disk, its manifest and its key. Reading and writing live next door.

    <store>/manifest.json              what the content is, and the checksum of every file below
    <store>/pages-00000.safetensors    pages 0 .. shard_pages-1
    <store>/queries.safetensors        all query vectors

A page shard holds, for its pages one after another: `vectors [T, d]` and `offsets [n+1]`, `prompt [P, d]` and
`prompt_offsets [n+1]`, `grids [n, 2]` (0, 0: no grid), and `signal.<name> [T, rows]`, token-major so that a page is one
contiguous slice. The manifest is the point of commitment: a file it does not list does not exist. It holds no dates and
nothing of the machine, so that the same content is the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.files import file_checksum, write_atomically
from pruners.core.errors import PruneBoardError

FORMAT = 1
MANIFEST = "manifest.json"
QUERIES = "queries.safetensors"
VECTOR_DTYPES = ("float16", "float32")
LIBRARIES = ("torch", "torchvision", "transformers", "colpali-engine", "peft", "pillow", "numpy")


class StoreError(PruneBoardError):
    """A store is absent, unfinished, damaged, or not the one that was asked for."""


@dataclass(frozen=True)
class Shard:
    """A finished file of a store. `ids` are its pages or queries; `images` hashes of the pages' decoded pixels."""

    file: str
    bytes: int
    checksum: str
    vectors: int
    ids: tuple[str, ...]
    images: tuple[str, ...] = ()


@dataclass(frozen=True)
class Manifest:
    """Everything that identifies a store, and what of it is finished."""

    identity: Mapping[str, Any]
    """What determines the content: backbone, benchmark, settings. The key is a hash of exactly this."""
    about: Mapping[str, Any]
    """What explains it to a person and does not determine it."""
    libraries: Mapping[str, str]
    vector_dtype: str
    shard_pages: int
    page_ids: tuple[str, ...]
    dim: int | None = None
    signals: Mapping[str, int] = field(default_factory=dict)
    """Rows (layers) of each signal."""
    shards: Mapping[int, Shard] = field(default_factory=dict)
    queries: Shard | None = None

    @property
    def key(self) -> str:
        return store_key({**self.identity, "vector_dtype": self.vector_dtype, "shard_pages": self.shard_pages})

    @property
    def shard_count(self) -> int:
        return -(-len(self.page_ids) // self.shard_pages)

    @property
    def complete(self) -> bool:
        return len(self.shards) == self.shard_count and self.queries is not None

    def pages_of(self, shard: int) -> tuple[str, ...]:
        return self.page_ids[shard * self.shard_pages : (shard + 1) * self.shard_pages]

    def with_shard(self, index: int, shard: Shard) -> Manifest:
        return replace(self, shards=dict(sorted({**self.shards, index: shard}.items())))

    def without_shards(self, files: Iterable[str]) -> Manifest:
        gone = set(files)
        kept = {index: shard for index, shard in self.shards.items() if shard.file not in gone}
        queries = None if self.queries is not None and self.queries.file in gone else self.queries
        return replace(self, shards=kept, queries=queries)


def store_key(identity: Mapping[str, Any]) -> str:
    """A hash of all settings, written canonically: other settings, other key, other folder."""
    text = json.dumps({"format": FORMAT, **identity}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def shard_file(index: int) -> str:
    return f"pages-{index:05d}.safetensors"


def damaged_files(folder: Path, manifest: Manifest) -> list[str]:
    """Files the manifest lists that are absent, shortened or altered."""
    shards = [*manifest.shards.values(), *([manifest.queries] if manifest.queries else [])]
    bad = []
    for shard in shards:
        path = folder / shard.file
        if not path.is_file() or path.stat().st_size != shard.bytes or file_checksum(path) != shard.checksum:
            bad.append(shard.file)
    return bad


def write_manifest(folder: Path, manifest: Manifest) -> None:
    shards = {str(index): asdict(shard) for index, shard in manifest.shards.items()}
    fields = {**asdict(manifest), "shards": shards}
    text = json.dumps({"format": FORMAT, "key": manifest.key, **fields}, indent=1, ensure_ascii=False)
    write_atomically(folder / MANIFEST, text.encode() + b"\n")


def read_manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    if not path.is_file():
        raise StoreError(f"{folder} is no store: it has no {MANIFEST}. Make one with `harness encode`")
    try:
        fields = json.loads(path.read_text())
        written, key = fields.pop("format"), fields.pop("key")
        if written != FORMAT:
            raise StoreError(f"{folder} has store format {written}, this release reads {FORMAT}; encode it again")
        fields["page_ids"] = tuple(fields["page_ids"])
        fields["shards"] = {
            int(index): _shard(shard, shard_file(int(index))) for index, shard in fields["shards"].items()
        }
        fields["queries"] = None if fields["queries"] is None else _shard(fields["queries"], QUERIES)
        manifest = Manifest(**fields)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{path} is damaged ({error}); delete the folder and encode again") from error
    if manifest.key != key:
        raise StoreError(f"{path} was edited: its settings do not give its key {key}. Delete the folder, encode again")
    return manifest


def _shard(fields: dict[str, Any], name: str) -> Shard:
    """A store may come from elsewhere: its files have the names they must have, so that none lies outside of it."""
    if fields["file"] != name:
        raise ValueError(f"{fields['file']!r} stands where {name} should")
    return Shard(**{**fields, "ids": tuple(fields["ids"]), "images": tuple(fields["images"])})
