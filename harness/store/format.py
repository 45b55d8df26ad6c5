"""The layout of a store on disk, its manifest and its key. Reading and writing live next door.

    <store>/manifest.json              what the content is, and the checksum of every file below and of itself
    <store>/pages-00000.safetensors    pages 0 .. shard_pages-1
    <store>/queries.safetensors        all query vectors

A page shard holds, for its pages one after another: `vectors [T, d]` and `offsets [n+1]`, `prompt [P, d]` and
`prompt_offsets [n+1]`, `grids [n, 2]` (0, 0: no grid), and `signal.<name> [T, rows]`, token-major so that a page is one
contiguous slice. The manifest names no files: theirs follow from the number of a shard, so that nothing outside the
folder can be meant. It holds no dates and nothing of the machine, so that the same content is the same bytes. While a
store is being written, what is finished stands in small files beside it: `harness/store/sidecar.py`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.files import checksum, file_checksum, write_atomically
from pruners.core.errors import PruneBoardError

FORMAT = 2
MANIFEST = "manifest.json"
QUERIES = "queries.safetensors"
VECTOR_DTYPES = ("float16", "float32")
LIBRARIES = ("torch", "torchvision", "transformers", "colpali-engine", "peft", "pillow", "numpy")


class StoreError(PruneBoardError):
    """A store is absent, unfinished, damaged, or not the one that was asked for."""


@dataclass(frozen=True)
class Shard:
    """A finished file of a store. `ids` are those of queries; a page shard's follow from the manifest."""

    file: str
    bytes: int
    checksum: str
    vectors: int
    images: str = ""
    """Hashes of the pages' decoded pixels, a line each: one text, because a million small ones are slow to read."""
    ids: tuple[str, ...] = ()

    @classmethod
    def of(cls, file: str, fields: Mapping[str, Any]) -> Shard:
        """From JSON, which may come from anywhere: `fields` must not name a file, nor anything unknown."""
        shard = cls(file, **{**fields, "ids": tuple(_texts(fields.get("ids", []), "ids"))})
        kinds = [type(value) for value in (shard.bytes, shard.vectors, shard.checksum, shard.images)]
        if kinds != [int, int, str, str]:
            raise ValueError(f"{file}: bytes and vectors are numbers, checksum and images are texts")
        return shard

    def as_json(self) -> dict[str, Any]:
        fields = {"bytes": self.bytes, "checksum": self.checksum, "vectors": self.vectors}
        more = {"images": self.images, "ids": self.ids}
        return fields | {name: value for name, value in more.items() if value}


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
    shards: dict[int, Shard] = field(default_factory=dict)
    """Grows in the hands of a writer."""
    queries: Shard | None = None

    @cached_property
    def key(self) -> str:
        return store_key({**self.identity, "vector_dtype": self.vector_dtype, "shard_pages": self.shard_pages})

    @cached_property
    def begun(self) -> str:
        """A hash of all that was settled before the first page, which every shard of a store has in common."""
        settled = [self.key, dict(self.about), dict(self.libraries), self.page_ids]
        return checksum(json.dumps(settled, sort_keys=True).encode())

    @property
    def shard_count(self) -> int:
        return -(-len(self.page_ids) // self.shard_pages)

    @property
    def complete(self) -> bool:
        return len(self.shards) == self.shard_count and self.queries is not None

    @property
    def files(self) -> list[Shard]:
        return [*self.shards.values(), *([self.queries] if self.queries else [])]

    @property
    def made_again(self) -> str:
        """How a user makes files of it again."""
        if "imported" in self.identity:
            return "the `harness import-vectors` that made it, with the same files"
        return "`harness encode --repair`"

    def pages_of(self, shard: int) -> tuple[str, ...]:
        return self.page_ids[shard * self.shard_pages : (shard + 1) * self.shard_pages]


def store_key(identity: Mapping[str, Any]) -> str:
    """A hash of all settings, written canonically: other settings, other key, other folder."""
    text = json.dumps({"format": FORMAT, **identity}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def shard_file(index: int) -> str:
    return f"pages-{index:05d}.safetensors"


def damaged_files(folder: Path, shards: list[Shard]) -> list[str]:
    """Those that are absent, shortened or altered, by name."""
    bad = []
    for shard in shards:
        path = folder / shard.file
        if not path.is_file() or path.stat().st_size != shard.bytes or file_checksum(path) != shard.checksum:
            bad.append(shard.file)
    return bad


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """One line a field and a shard: readable, and as quick to write as JSON without any layout."""
    shards = ",\n".join(f'"{index}": {_json(shard.as_json())}' for index, shard in sorted(manifest.shards.items()))
    fields = {
        "format": FORMAT,
        "key": manifest.key,
        **{name: getattr(manifest, name) for name in _PLAIN},
        "queries": manifest.queries and manifest.queries.as_json(),
        "page_ids": manifest.page_ids,
    }
    lines = [*(f'"{name}": {_json(value)}' for name, value in fields.items()), f'"shards": {{\n{shards}\n}}']
    above = ("{\n" + ",\n".join(lines)).encode()
    write_atomically(folder / MANIFEST, above + _CHECKSUM + f'"{checksum(above)}"\n}}\n'.encode())


_CHECKSUM = b',\n"checksum": '
"""The last field of a manifest: of all that stands above it."""
_PLAIN = ("identity", "about", "libraries", "vector_dtype", "shard_pages", "dim", "signals")


def read_manifest_file(folder: Path) -> Manifest:
    """What the manifest itself says; of an unfinished store `read_manifest` knows more."""
    path = folder / MANIFEST
    if not path.is_file():
        raise StoreError(f"{folder} is no store: it has no {MANIFEST}. Make one with `harness encode`")
    try:
        text = path.read_bytes()
        fields = json.loads(text)
        if (noted := fields.pop("checksum", None)) and noted != checksum(text.rpartition(_CHECKSUM)[0]):
            raise ValueError("its checksum is another: it was edited, or a bit flipped")
        written, key = fields.pop("format"), fields.pop("key")
        if written != FORMAT:
            raise StoreError(f"{folder} has store format {written}, this release reads {FORMAT}; encode it again")
        fields["page_ids"] = tuple(_texts(fields["page_ids"], "page_ids"))
        fields["shards"] = {int(i): Shard.of(shard_file(int(i)), shard) for i, shard in fields["shards"].items()}
        fields["queries"] = None if fields["queries"] is None else Shard.of(QUERIES, fields["queries"])
        manifest = Manifest(**fields)
        if manifest.shard_pages < 1 or not manifest.shards.keys() <= set(range(manifest.shard_count)):
            raise ValueError("it has shards without pages")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{path} is damaged ({error}); delete the folder and encode again") from error
    if manifest.key != key:
        raise StoreError(f"{path} was edited: its settings do not give its key {key}. Delete the folder, encode again")
    return manifest


def _texts(value: Any, name: str) -> list[str]:
    if type(value) is not list or not set(map(type, value)) <= {str}:
        raise ValueError(f"{name} is no list of texts")
    return value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
