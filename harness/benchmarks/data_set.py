"""A benchmark: pages, queries, relevance; and the reader of a local folder in ViDoRe's layout.

    <folder>/corpus/test-*.parquet     id (or _id, corpus-id), image {bytes, path}; text, for backbones that read it
    <folder>/queries/test-*.parquet    id (or _id, query-id), text (or query)
    <folder>/qrels/test-*.parquet      query-id, corpus-id, score

Images stay encoded in the parquet files until a page is asked for. Ids are strings. What was really read is hashed.
"""

from __future__ import annotations

import bisect
import io
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image, UnidentifiedImageError

from harness.benchmarks.content import content_hashes, file_hash
from harness.benchmarks.embedded import BenchmarkError
from harness.benchmarks.hash_cache import is_large, kept_hashes

PAGE_ID = ("_id", "id", "corpus-id")
QUERY_ID = ("_id", "id", "query-id")
QUERY_TEXT = ("text", "query")


@dataclass(frozen=True)
class DataSet:
    """Pages (images decoded only when asked for), queries and graded relevance; `content` hashes what was read."""

    name: str
    page_ids: tuple[str, ...]
    image: Callable[[int], Image.Image]
    """The page at an index of `page_ids`, in RGB."""
    queries: Mapping[str, str]
    qrels: Mapping[str, Mapping[str, int]]
    """query id -> page id -> grade."""
    file_hashes: tuple[str, ...] = ()
    """Of each page's image as it is stored: pages with the same hash are the same."""
    content: Mapping[str, str] = field(default_factory=dict)
    """Hashes of `corpus`, `queries` and `qrels`, by `harness/benchmarks/content.py`."""
    languages: Mapping[str, str] = field(default_factory=dict)
    """query id -> language, where the queries have such a column: averages are taken by language first."""
    dropped_queries: int = 0
    """Queries without a text, left out: a null query would match every page."""
    texts: Sequence[str] | None = None
    """The pages' texts, where the corpus has such a column; `content` hashes them then."""
    mteb_task: str = ""
    """The mteb task that this data set is, or is a part of."""
    revision: str | None = None
    """The revision that was asked for, where there is one."""
    selector: str = ""
    """The benchmark by which another process finds this data set, by its name; nothing if it was made by hand."""
    differs: tuple[str, ...] | None = None
    """How what was read differs from what is pinned under this name; None if nothing is pinned."""


def read_folder(folder: Path, split: str = "test") -> DataSet:
    """The benchmark in a local folder."""
    folder = Path(folder)
    if not folder.is_dir():
        raise BenchmarkError(f"there is no benchmark folder {str(folder)!r}")
    corpus = _Corpus(_parquet_files(folder, "corpus", split))
    texts = _page_texts(_parquet_files(folder, "corpus", split))
    queries, languages, dropped = _read_queries(_parquet_files(folder, "queries", split))
    qrels = _read_qrels(_parquet_files(folder, "qrels", split), queries)
    known = set(corpus.ids)
    for query, pages in qrels.items():
        if unknown := sorted(pages.keys() - known):
            raise BenchmarkError(f"{folder}: qrels of query {query!r} name page {unknown[0]!r}, not in the corpus")
    return DataSet(
        name=folder.resolve().name,
        page_ids=tuple(corpus.ids),
        image=corpus.image,
        queries=queries,
        qrels=qrels,
        file_hashes=tuple(corpus.files),
        content=content_hashes(corpus.ids, corpus.files, queries, languages, qrels, texts),
        languages=languages,
        dropped_queries=dropped,
        texts=texts,
    )


class _Corpus:
    """Rows of the corpus files: ids and a hash at once, images by row group when asked for."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.ids: list[str] = []
        self._where: list[tuple[pq.ParquetFile, int, int]] = []
        self.files: list[str] = []
        self._read(files)
        if len(set(self.ids)) != len(self.ids):
            raise BenchmarkError(f"{files[0].parent}: two pages have the same id")
        self._group = lru_cache(maxsize=2)(lambda file, group: file.read_row_group(group, columns=["image"])["image"])

    def _read(self, files: Sequence[Path]) -> None:
        large = is_large(files)
        for path in files:
            file = _opened(path, memory_map=True)
            id_column = _column(file.schema_arrow.names, PAGE_ID, path)
            _column(file.schema_arrow.names, ("image",), path)
            for group in range(file.num_row_groups):
                ids = file.read_row_group(group, columns=[id_column])[id_column]
                self.ids += [str(page.as_py()) for page in ids]
                self._where += [(file, group, row) for row in range(len(ids))]
            make = partial(_image_hashes, file)
            self.files += kept_hashes(path, file.metadata.num_rows, make) if large else make()

    def image(self, index: int) -> Image.Image:
        file, group, row = self._where[index]
        return decode_page(self.ids[index], _encoded(self._group(file, group)[row].as_py()))


def _image_hashes(file: pq.ParquetFile) -> list[str]:
    """Of all its images as they are stored, a row group at a time."""
    groups = (file.read_row_group(group, columns=["image"])["image"] for group in range(file.num_row_groups))
    return [file_hash(_encoded(image.as_py()) or b"") for group in groups for image in group]


def decode_page(page: str, encoded: bytes | None) -> Image.Image:
    """The image of a page, in RGB."""
    if encoded is None:
        raise BenchmarkError(f"page {page!r} has no image bytes")
    try:
        return Image.open(io.BytesIO(encoded)).convert("RGB")
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        raise BenchmarkError(f"the image of page {page!r} cannot be read: {error}") from error


def _encoded(value: Any) -> bytes | None:
    return value.get("bytes") if isinstance(value, dict) else value


class _Texts(Sequence[str]):
    """The pages' texts in order, read by row group when asked for: of a million pages they are gigabytes."""

    def __init__(self, files: Sequence[pq.ParquetFile]) -> None:
        self._groups = [(file, group) for file in files for group in range(file.num_row_groups)]
        rows = [file.metadata.row_group(group).num_rows for file, group in self._groups]
        self._starts = [0, *itertools.accumulate(rows)]
        self._texts = lru_cache(maxsize=2)(_texts)

    def __len__(self) -> int:
        return self._starts[-1]

    def __iter__(self) -> Iterator[str]:
        return (text for file, group in self._groups for text in _texts(file, group))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        if not 0 <= index < len(self):
            raise IndexError(f"text {index} of {len(self)} pages")
        at = bisect.bisect_right(self._starts, index) - 1
        return self._texts(*self._groups[at])[index - self._starts[at]]


def _texts(file: pq.ParquetFile, group: int) -> list[str]:
    return [text or "" for text in file.read_row_group(group, columns=["text"])["text"].to_pylist()]


def _page_texts(files: Sequence[Path]) -> _Texts | None:
    """None if a corpus file has no such column."""
    opened = [_opened(path, memory_map=True) for path in files]
    return _Texts(opened) if all("text" in file.schema_arrow.names for file in opened) else None


def _read_queries(files: Sequence[Path]) -> tuple[dict[str, str], dict[str, str], int]:
    queries: dict[str, str] = {}
    languages: dict[str, str] = {}
    dropped = 0
    for path, rows in _rows(files):
        for row in rows:
            text = row[_column(row, QUERY_TEXT, path)]
            if not isinstance(text, str | None):
                raise BenchmarkError(f"{path}: the text of a query is {str(text)[:40]!r}, which is no text")
            if text is None or not text.strip():
                dropped += 1
                continue
            query = str(row[_column(row, QUERY_ID, path)])
            if query in queries:
                raise BenchmarkError(f"{path}: the query id {query!r} occurs twice")
            queries[query] = text
            if row.get("language"):
                languages[query] = str(row["language"])
    return queries, languages, dropped


def _read_qrels(files: Sequence[Path], queries: Mapping[str, str]) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {}
    for path, rows in _rows(files):
        for row in rows:
            for name in ("query-id", "corpus-id", "score"):
                _column(row, (name,), path)
            if (query := str(row["query-id"])) in queries:
                qrels.setdefault(query, {})[str(row["corpus-id"])] = _grade(row["score"], query, path)
    return qrels


def _grade(score: Any, query: str, path: Path) -> int:
    """A whole number, also where it is written as 1.0 or "1"."""
    try:
        if (grade := int(score)) == float(score):
            return grade
    except (ValueError, TypeError, OverflowError):
        pass
    raise BenchmarkError(f"{path}: the score {str(score)[:40]!r} of query {query!r} is no whole number")


def _rows(files: Sequence[Path]) -> Iterator[tuple[Path, list[dict[str, Any]]]]:
    return ((path, _table(path).to_pylist()) for path in files)


def _table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """A file's rows. Not by `read_table`, which loads pandas to do the same."""
    with _opened(path) as file:
        return file.read(columns=columns)


def _opened(path: Path, **options: Any) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, **options)
    except (pa.ArrowException, OSError) as error:
        raise BenchmarkError(f"{path} is no parquet file, or a damaged one: {str(error).splitlines()[0]}") from error


def _parquet_files(folder: Path, part: str, split: str) -> list[Path]:
    files = sorted((folder / part).glob(f"{split}-*.parquet")) + sorted((folder / part).glob(f"{split}.parquet"))
    if not files:
        raise BenchmarkError(f"{folder} has no {part}/{split}-*.parquet; a benchmark needs corpus, queries, qrels")
    return files


def _column(names: Any, wanted: Sequence[str], path: Path) -> str:
    for name in wanted:
        if name in names:
            return name
    raise BenchmarkError(f"{path} has no column {' or '.join(wanted)}; it has {', '.join(names)}")
