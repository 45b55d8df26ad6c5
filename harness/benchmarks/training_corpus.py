"""The ColPali training corpus, read by rows: its parquet files are tens of gigabytes, a draw needs some hundred pages.

    data/train-*.parquet     image {bytes, path}, query; further columns are not read

Files on this disk are read where they are. From the hub only the column of queries and the row groups with drawn pages
are fetched, by ranges of files at a pinned revision; what was fetched is kept beside what `datasets` keeps.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import hashlib
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from huggingface_hub import HfFileSystem, snapshot_download
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
from huggingface_hub.utils import tqdm

from harness.benchmarks.content import content_hashes, file_hash
from harness.benchmarks.data_set import DataSet, decode_page
from harness.benchmarks.embedded import BenchmarkError
from harness.files import temporary_name

TRAINING_CORPUS = "vidore/colpali_train_set"
REVISION = "e13d3594064836f7fd69fad7e3d2b51065b335c7"
"""The commit that draws are made from, so that a seed means the same pairs for everyone."""
FILES = "data/train-*.parquet"
KEPT_ROWS = 16  # pages of a row group of what is kept


class CorpusRows:
    """Rows of parquet files, counted through. A page is read by its row group, and the last groups are remembered."""

    def __init__(self, files: Sequence[Any]) -> None:
        self._files = [pq.ParquetFile(file) for file in files]
        self._groups = [
            (file, group, file.metadata.row_group(group).num_rows)
            for file in self._files
            for group in range(file.num_row_groups)
        ]
        self._read = lru_cache(maxsize=2)(self._group)

    def queries(self) -> list[str | None]:
        with tqdm(self._files, desc="queries of the training corpus", disable=len(self._files) == 1) as files:
            return [text for file in files for text in file.read(columns=["query"])["query"].to_pylist()]

    def image(self, row: int) -> bytes | None:
        for place, (_, _, count) in enumerate(self._groups):
            if row < count:
                image = self._read(place)[row].as_py()
                return None if image is None else image["bytes"]
            row -= count
        raise IndexError(row)

    def _group(self, place: int) -> Any:
        file, group, _ = self._groups[place]
        return file.read_row_group(group, columns=["image"])["image"]


@dataclass(frozen=True)
class TrainingCorpus:
    """All rows of the corpus; a row that asks nothing is not drawn."""

    files: tuple[Any, ...]
    """Paths, or open files of the hub."""
    revision: str | None = None
    kept: Path | None = None
    """Where fetched pages are kept; None if the files are on this disk."""

    @cached_property
    def rows(self) -> CorpusRows:
        return CorpusRows(self.files)

    @cached_property
    def queries(self) -> list[str | None]:
        if self.kept is None:
            return self.rows.queries()
        path = self.kept / "queries.parquet"
        if not path.is_file():
            _keep(path, [pa.table({"query": pa.array(self.rows.queries(), pa.string())})])
        return CorpusRows([path]).queries()

    @cached_property
    def asked(self) -> list[int]:
        """Rows with a query."""
        return [i for i, text in enumerate(self.queries) if text and text.strip()]

    def draw(self, pairs: int, seed: int) -> list[int]:
        """Rows drawn by a seed, in the corpus's order; all that ask something if there are fewer."""
        return sorted(random.Random(seed).sample(self.asked, min(pairs, len(self.asked))))

    def benchmark(self, name: str, rows: Sequence[int]) -> DataSet:
        """These rows as a data set: every query with its page."""
        ids = tuple(f"train-{row}" for row in rows)
        source, places = self._local(rows)
        files = tuple(file_hash(source.image(place) or b"") for place in places)
        queries = {page: self.queries[row] or "" for page, row in zip(ids, rows, strict=True)}
        qrels = {page: {page: 1} for page in ids}
        return DataSet(
            name=name,
            page_ids=ids,
            image=lambda i: decode_page(ids[i], source.image(places[i])),
            queries=queries,
            qrels=qrels,
            file_hashes=files,
            content=content_hashes(ids, files, queries, {}, qrels),
            dropped_queries=len(self.queries) - len(self.asked),
            revision=self.revision,
        )

    def _local(self, rows: Sequence[int]) -> tuple[CorpusRows, Sequence[int]]:
        """Where the pages of rows are on this disk, fetched if they must be."""
        if self.kept is None:
            return self.rows, rows
        path = self.kept / f"pages-{hashlib.sha256(repr(list(rows)).encode()).hexdigest()[:16]}.parquet"
        if not path.is_file():
            _keep(path, self._fetched(rows))
        return CorpusRows([path]), range(len(rows))

    def _fetched(self, rows: Sequence[int]) -> Iterator[pa.Table]:
        """Some pages at a time: those of many draws are gigabytes."""
        with tqdm(total=len(rows), desc="pages of the training corpus") as shown:
            for first in range(0, len(rows), KEPT_ROWS):
                images = [{"bytes": self.rows.image(row)} for row in rows[first : first + KEPT_ROWS]]
                shown.update(len(images))
                yield pa.table({"image": pa.array(images, pa.struct([("bytes", pa.binary())]))})


def open_corpus(
    path: str | Path = TRAINING_CORPUS, revision: str | None = None, hub: Any = None, keep: Path | None = None
) -> TrainingCorpus:
    """The corpus in a folder, in the hub's cache, or in the hub itself. `hub` is a file system of fsspec's kind."""
    if Path(path).is_dir():
        return TrainingCorpus(_local_files(Path(path)))
    revision = revision or REVISION
    if hub is None:
        try:
            whole = snapshot_download(str(path), repo_type="dataset", revision=revision, local_files_only=True)
            return TrainingCorpus(_local_files(Path(whole)), Path(whole).name)
        except (LocalEntryNotFoundError, BenchmarkError):
            hub = HfFileSystem()  # not there, or only a part of it
    kept = (keep or Path(datasets.config.HF_DATASETS_CACHE) / "pruneboard") / str(path).replace("/", "--") / revision
    try:
        found = sorted(hub.glob(f"datasets/{path}@{revision}/{FILES}"))
        if not found:
            raise FileNotFoundError(f"{path} has no {FILES} at revision {revision}")
        return TrainingCorpus(tuple(hub.open(file, "rb") for file in found), revision, kept)
    except (HfHubHTTPError, OSError) as error:
        raise BenchmarkError(
            f"colpali-train cannot be loaded: {path} at revision {revision} is not in the local cache and could not be "
            f"fetched ({type(error).__name__}); fetch it where there is a network, or calibrate on pages of your own"
        ) from error


def _local_files(folder: Path) -> tuple[Path, ...]:
    files = tuple(sorted(folder.glob(FILES)))
    if not files:
        raise BenchmarkError(f"{folder} has no {FILES}, as vidore/colpali_train_set has")
    if len(missing := _missing(files)):
        raise BenchmarkError(f"{folder} lacks {missing[0]} of the training corpus: a draw would not be of all of it")
    return files


def _missing(files: Sequence[Path]) -> list[str]:
    """Names that should be there, by the count in `train-00000-of-00082.parquet`."""
    last = files[-1].stem.rpartition("-of-")[2]
    wanted = [f"train-{i:05d}-of-{last}.parquet" for i in range(int(last))] if last.isdigit() else []
    return sorted(set(wanted) - {file.name for file in files})


def _keep(path: Path, tables: Iterable[pa.Table]) -> None:
    """Write tables one after another into a file that is whole under its name or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_name(path)
    writer = None
    try:
        for table in tables:
            writer = writer or pq.ParquetWriter(temporary, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
    temporary.replace(path)
