"""A store from vectors one already has, without any model: safetensors, npz or parquet files.

Two layouts of a file of page vectors (query files are the same, without grid and signals):

- **ragged arrays** (.safetensors, .npz): `vectors [T, d]` of all pages one after another, `offsets [n+1]`; optional
  `ids [n]` (npz only), `grids [n, 2]`, and `signal.<name> [T, rows]`, token-major as in a store;
- **one row a page** (.parquet): `id`, `vectors` (list of lists), optional `grid` and `signal.<name>` (`[rows][N]`).

Files are hashed, and the hash is the identity of the store: other vectors, other store.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from harness.files import file_checksum
from harness.store.encoded_page import EncodedPage
from harness.store.format import StoreError
from harness.store.reader import Store
from harness.store.writer import StoreWriter

SIGNAL = "signal."


@dataclass(frozen=True)
class VectorFile:
    """The content of one file: `[N, d]` arrays by item, and what came with them."""

    path: Path
    ids: tuple[str, ...]
    vectors: Sequence[np.ndarray]
    grids: Sequence[tuple[int, int] | None] = ()
    signals: Mapping[str, Sequence[np.ndarray]] = field(default_factory=dict)
    """By name, `[rows, N]` arrays by item."""

    def page(self, index: int) -> EncodedPage:
        return EncodedPage(
            vectors=_tensor(self.vectors[index]),
            grid=self.grids[index] if self.grids else None,
            signals={name: _tensor(values[index]) for name, values in self.signals.items()},
        )


def import_vectors(
    pages: Path, queries: Path, folder: Path, *, name: str, vector_dtype: str = "float16", note: str = ""
) -> Store:
    """Write the store `folder` from a file of page vectors and one of query vectors; of one that is there, mend it."""
    page_file, query_file = read_vectors(pages), read_vectors(queries)
    identity = {
        "imported": {"name": name, "pages": file_checksum(pages), "queries": file_checksum(queries)},
    }
    about = {"files": [pages.name, queries.name], "note": note}
    with StoreWriter(folder, identity, page_file.ids, about=about, vector_dtype=vector_dtype) as writer:
        writer.forget(writer.damaged())
        index = {page: i for i, page in enumerate(page_file.ids)}
        for page_id in writer.wanted():
            writer.add(page_id, page_file.page(index[page_id]))
        if writer.manifest.queries is None:
            writer.add_queries(query_file.ids, [_tensor(v) for v in query_file.vectors])
    return Store(folder)


def read_vectors(path: Path) -> VectorFile:
    """Read one file, whichever of the formats it is."""
    if not path.is_file():
        raise StoreError(f"there is no file {str(path)!r}")
    readers = {".safetensors": _read_safetensors, ".npz": _read_npz, ".parquet": _read_parquet}
    if path.suffix not in readers:
        raise StoreError(f"{path}: vectors are read from {', '.join(readers)} files, not {path.suffix or 'this'}")
    return readers[path.suffix](path)


def _read_safetensors(path: Path) -> VectorFile:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:  # torch, because numpy has no bfloat16
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a dict)
            names = (file.metadata() or {}).get("ids")
    except SafetensorError as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
    numpy = {k: (v.float() if v.is_floating_point() else v).numpy() for k, v in arrays.items()}
    return _ragged(path, numpy, names.split("\n") if names else None)


def _read_npz(path: Path) -> VectorFile:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
    names = arrays.pop("ids", None)
    return _ragged(path, arrays, None if names is None else [str(name) for name in names])


def _ragged(path: Path, arrays: Mapping[str, np.ndarray], ids: Sequence[str] | None) -> VectorFile:
    for name in ("vectors", "offsets"):
        if name not in arrays:
            raise StoreError(f"{path} has no array {name!r}; it has {', '.join(sorted(arrays)) or 'none'}")
    for name, array in arrays.items():
        whole = name in ("offsets", "grids")
        if array.dtype.kind not in ("iu" if whole else "fiu"):
            raise StoreError(f"{path}: {name} holds {array.dtype}, not {'whole' if whole else 'real'} numbers")
    vectors, offsets = arrays["vectors"], arrays["offsets"].astype(np.int64)
    if vectors.ndim != 2 or offsets.ndim != 1 or len(offsets) < 2:
        raise StoreError(f"{path}: vectors must be [T, d] and offsets [n+1], not {vectors.shape} and {offsets.shape}")
    if offsets[0] != 0 or offsets[-1] != len(vectors) or (np.diff(offsets) < 1).any():
        raise StoreError(f"{path}: offsets must rise from 0 to the {len(vectors)} rows of vectors, one item at least 1")
    count, cuts = len(offsets) - 1, offsets[1:-1]
    signals = {key.removeprefix(SIGNAL): value for key, value in arrays.items() if key.startswith(SIGNAL)}
    for name, value in signals.items():
        if value.ndim != 2 or len(value) != len(vectors):
            raise StoreError(f"{path}: {SIGNAL}{name} must be [{len(vectors)}, rows], not {list(value.shape)}")
    if unknown := sorted(set(arrays) - {"vectors", "offsets", "grids"} - {SIGNAL + name for name in signals}):
        raise StoreError(f"{path}: unknown array {unknown[0]!r}; signals are named {SIGNAL}<name>")
    grids = arrays.get("grids")
    if grids is not None and (grids.shape != (count, 2) or (grids < 0).any()):
        negative = " with a negative side" if (grids < 0).any() else ""
        raise StoreError(f"{path}: grids must be [{count}, 2] rows and columns, not {list(grids.shape)}{negative}")
    if ids is not None and len(ids) != count:
        raise StoreError(f"{path}: {len(ids)} ids for {count} items")
    return VectorFile(
        path,
        tuple(ids or (str(i) for i in range(count))),
        np.split(vectors, cuts),
        [] if grids is None else [(int(r), int(c)) if r and c else None for r, c in grids],
        {name: [part.T for part in np.split(value, cuts)] for name, value in signals.items()},
    )


def _read_parquet(path: Path) -> VectorFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
    for name in ("id", "vectors"):
        if name not in table.column_names:
            raise StoreError(f"{path} has no column {name!r}; it has {', '.join(table.column_names)}")
    columns = {name: table[name].to_pylist() for name in table.column_names}
    grids = [_grid(path, grid) for grid in columns.get("grid", [])]
    signals = {name.removeprefix(SIGNAL): columns[name] for name in columns if name.startswith(SIGNAL)}
    return VectorFile(
        path,
        tuple(str(name) for name in columns["id"]),
        [_matrix(path, value) for value in columns["vectors"]],
        grids,
        {name: [_matrix(path, value) for value in values] for name, values in signals.items()},
    )


def _grid(path: Path, given: Any) -> tuple[int, int] | None:
    if given is None:
        return None
    match given:
        case [int(rows), int(columns)] if rows > 0 and columns > 0:
            return rows, columns
    raise StoreError(f"{path}: a grid is a number of rows and one of columns, not {str(given)[:40]}")


def _matrix(path: Path, rows: Any) -> np.ndarray:
    try:
        matrix = np.array(rows, dtype=np.float32)
    except (ValueError, TypeError) as error:
        raise StoreError(f"{path}: a row holds lists of unequal lengths, or no numbers: {error}") from error
    if matrix.ndim != 2:
        raise StoreError(f"{path}: each row must hold a list of lists, not shape {matrix.shape}")
    return matrix


def _tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
