"""What is finished of a store that is still being written: a small JSON file beside each shard.

    <store>/pages-00003.json     size, checksum and vectors of pages-00003.safetensors, written after it
    <store>/queries.json         the same of the queries

A shard without its sidecar does not exist. So processes that write different shards need not know of each other, and
finishing one shard costs the same whether there are ten or a million. Whoever finds everything there writes the
manifest from the sidecars and removes them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Container
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.files import write_atomically
from harness.store.format import QUERIES, Manifest, Shard, StoreError, read_manifest_file, shard_file

_SIDECAR = re.compile(r"(?:pages-(\d{5,9})|queries)\.json")


def sidecar(file: str) -> str:
    return file.removesuffix(".safetensors") + ".json"


def write_sidecar(folder: Path, manifest: Manifest, shard: Shard) -> None:
    shape = {"dim": manifest.dim, "signals": dict(manifest.signals)}
    fields = {"store": manifest.begun, **shape, "shard": shard.as_json()}
    write_atomically(folder / sidecar(shard.file), (json.dumps(fields, ensure_ascii=False) + "\n").encode())


def read_manifest(folder: Path) -> Manifest:
    """A store's manifest, with all that is finished."""
    manifest = read_manifest_file(folder)
    if manifest.complete:
        return manifest
    try:
        return with_sidecars(folder, manifest, range(manifest.shard_count))
    except FileNotFoundError:  # another process finished the store just now, and removed them
        return read_manifest_file(folder)


def with_sidecars(folder: Path, manifest: Manifest, shards: Container[int]) -> Manifest:
    """The manifest with what sidecars say of these shards, and of the queries."""
    found = {**manifest.shards}
    shape: tuple[str, Any] | None = None if manifest.dim is None else ("", (manifest.dim, dict(manifest.signals)))
    queries = manifest.queries
    for name, index in sidecars(folder):
        if index is not None and index not in shards:
            continue
        file = QUERIES if index is None else shard_file(index)
        fields = _read(folder / name, manifest.begun)
        try:
            shard, here = Shard.of(file, fields["shard"]), (fields["dim"], dict(fields["signals"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _unusable(folder / name, f"is damaged ({error})") from error
        if shape is not None and shape[1] != here:
            why = f"speaks of {here[0]} columns and signals {here[1]}, {shape[0] or 'the store'} of {shape[1]}"
            raise _unusable(folder / name, why)
        shape = shape or (name, here)
        if index is None:
            queries = shard
        else:
            found[index] = shard
    dim, signals = shape[1] if shape else (None, {})
    return replace(manifest, dim=dim, signals=signals, shards=dict(sorted(found.items())), queries=queries)


def sidecars(folder: Path) -> list[tuple[str, int | None]]:
    """Names of the sidecars that are there, each with the number of its shard (None: the queries), in order."""
    names = [(entry.name, match) for entry in os.scandir(folder) if (match := _SIDECAR.fullmatch(entry.name))]
    found = [(name, int(match[1]) if match[1] else None) for name, match in names]
    proper = [(name, i) for name, i in found if name == sidecar(QUERIES if i is None else shard_file(i))]
    return sorted(proper, key=lambda pair: -1 if pair[1] is None else pair[1])


def _read(path: Path, begun: str) -> dict[str, Any]:
    try:
        fields = json.loads(path.read_bytes())
        store = fields["store"]
    except (ValueError, KeyError, TypeError) as error:
        raise _unusable(path, f"is damaged ({error})") from error
    if store != begun:
        raise _unusable(path, "was written for a store that was begun otherwise (other libraries, or batch size)")
    return fields


def _unusable(path: Path, why: str) -> StoreError:
    return StoreError(f"{path} {why}. Delete this file, and the same command encodes its pages again")
