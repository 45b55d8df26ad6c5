"""Parquet tables of a stated form: written compactly, the same bytes for the same rows; read with limits.

A file from outside is never trusted: its size, columns, types and number of rows are looked at before its content is.
What it says of itself may be a lie, so memory is limited while it is read.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pruners.core.errors import PruneBoardError

KINDS: dict[str, pa.DataType] = {
    "text": pa.string(),
    "texts": pa.list_(pa.string()),
    "integer": pa.int32(),
    "integers": pa.list_(pa.int32()),
    "number": pa.float64(),
    "float32": pa.float32(),
}
Form = Mapping[str, str]
"""Columns and their kinds, in order."""

MAX_BYTES = 32 * 2**20
MAX_UNPACKED = 512 * 2**20
MAX_ROWS = 5_000_000
MAX_VALUES = 50_000_000  # of one column: a run of equal values takes no bytes
MAX_TEXTS = 16  # of one row, on the mean: rankings have ten
MAX_MEMORY = 2**30
"""That reading may take beyond what the process has (where the system can limit it)."""


class TableError(PruneBoardError):
    """A parquet file is not what it should be."""


def pack(columns: Mapping[str, Any], form: Form) -> bytes:
    """A parquet file's bytes. Texts become dictionary codes; numbers that hardly repeat are split by byte first."""
    return pack_groups([columns], form)


def pack_groups(groups: Iterable[Mapping[str, Any]], form: Form) -> bytes:
    """A table of which only some rows are in memory at once: each group is packed before the next is asked for."""
    split = {_leaf(name, kind): "BYTE_STREAM_SPLIT" for name, kind in form.items() if kind == "float32"}
    packed = io.BytesIO()
    with pq.ParquetWriter(
        packed,
        pa.schema([(name, KINDS[kind]) for name, kind in form.items()]),
        compression="zstd",
        compression_level=15,
        use_dictionary=[_leaf(name, kind) for name, kind in form.items() if kind != "float32"],
        column_encoding=split or None,
        write_statistics=False,
        store_schema=False,
        memory_pool=pa.system_memory_pool(),  # Arrow's own keeps what it had, and a long table has much
    ) as writer:
        for columns in groups:
            writer.write_table(pa.table({name: pa.array(columns[name], KINDS[kind]) for name, kind in form.items()}))
            del columns  # before the next group is made
    return packed.getvalue()


def read(path: Path, form: Form, optional: Sequence[str] = ()) -> pa.Table:
    """The table in a file, if it has exactly this form; text columns come as dictionary codes.

    Values may be missing in `optional` columns only.
    """
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise TableError(f"{path.name} has {size / 2**20:.0f} MB; at most {MAX_BYTES // 2**20} are read")
        texts = [_leaf(name, kind) for name, kind in form.items() if kind in ("text", "texts")]
        data = path.read_bytes()
        about = pq.read_metadata(pa.BufferReader(data))
        _check_form(path, about, form)
        with _limited_memory():
            file = pq.ParquetFile(pa.BufferReader(data), metadata=about, read_dictionary=texts, pre_buffer=False)
            table = file.read(use_threads=False).combine_chunks()  # small files: handing them to threads takes longer
            table.validate(full=True)
            for name, kind in form.items():
                _check_column(path, name, kind, table[name].combine_chunks(), name in optional)
    except MemoryError as error:
        raise TableError(f"{path.name} unpacks to more than {MAX_MEMORY // 2**20} MB, whatever it says") from error
    except OSError as error:
        raise TableError(f"{path.name} cannot be read: {error.strerror or error}") from error
    except (pa.ArrowException, ValueError, KeyError) as error:  # also text that is none
        reason = (str(error).splitlines() or ["no reason given"])[0]
        raise TableError(f"{path.name} is no parquet file, or a damaged one: {reason}") from error
    if table.num_rows != file.metadata.num_rows:
        raise TableError(f"{path.name} has {table.num_rows} rows and states {file.metadata.num_rows}")
    return table


@contextmanager
def _limited_memory() -> Iterator[None]:
    """What is allocated beyond the limit is refused, and Arrow says so. Only Linux has such a limit."""
    if sys.platform != "linux":
        yield
        return
    import resource

    pa.array([0])  # Arrow sets a gigabyte of addresses aside at first, which is not what is limited here
    before, most = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limits = [limit for limit in (before, most, used + MAX_MEMORY) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(limits), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, most))


def _check_column(path: Path, name: str, kind: str, values: pa.Array, optional: bool) -> None:
    inner = values.flatten() if kind in ("texts", "integers") else values
    if len(inner) > MAX_VALUES:
        raise TableError(f"{path.name} has {len(inner)} values in the column {name}; at most {MAX_VALUES} are read")
    if kind == "texts" and len(inner) > MAX_TEXTS * len(values):
        raise TableError(f"{path.name} has {len(inner)} texts in {len(values)} rows; at most {MAX_TEXTS} in each")
    if not optional and (values.null_count or inner.null_count):
        raise TableError(f"{path.name}: column {name} has rows without a value")
    if kind in ("text", "texts"):
        inner.dictionary.to_pylist()  # raises if it is no text
        if inner.dictionary.null_count:
            raise TableError(f"{path.name}: column {name} has rows without a value")


def _check_form(path: Path, about: pq.FileMetaData, form: Form) -> None:
    schema = about.schema.to_arrow_schema()
    if schema.names != list(form):
        raise TableError(f"{path.name} has the columns {', '.join(schema.names)[:300]}; they must be {', '.join(form)}")
    for name, kind in form.items():
        if _plain(schema.field(name).type) != KINDS[kind]:
            raise TableError(f"{path.name}: column {name} is {schema.field(name).type}; it must be {KINDS[kind]}")
    if about.num_rows > MAX_ROWS:
        raise TableError(f"{path.name} has {about.num_rows} rows; at most {MAX_ROWS} are read")
    # what a footer says of its columns is not asked for: where it contradicts itself, Arrow would end this process
    unpacked = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    if unpacked > MAX_UNPACKED:
        raise TableError(f"{path.name} unpacks to {unpacked / 2**20:.0f} MB; at most {MAX_UNPACKED // 2**20} are read")


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without its encoding."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    return kind


def _leaf(name: str, kind: str) -> str:
    return f"{name}.list.element" if kind in ("texts", "integers") else name
