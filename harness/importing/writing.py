"""Writing a benchmark folder in ViDoRe's layout: parquet files and a README that lists them, whole or not at all.

Everything goes into a hidden folder beside the wanted one, which gets its name in one step at the end.
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from harness.files import alone_with
from pruners.core.errors import PruneBoardError

PARTS = ("corpus", "queries", "qrels")
FILE = "test-00000-of-00001.parquet"
ROW_GROUP = 32  # pages held in memory at once, and read at once later

_CONFIG = "- config_name: {part}\n  data_files:\n  - split: test\n    path: {part}/test-*.parquet\n"
_STRING = {"dtype": "string", "_type": "Value"}
_FEATURES = {
    "corpus": {"corpus-id": _STRING, "image": {"_type": "Image"}, "text": _STRING},
    "queries": {"query-id": _STRING, "query": _STRING, "language": _STRING},
    "qrels": {"query-id": _STRING, "corpus-id": _STRING, "score": {"dtype": "int64", "_type": "Value"}},
}
"""As the `datasets` library notes them in a file, so that it decodes images by itself."""

_SCHEMAS = {
    "corpus": [
        ("corpus-id", pa.string()),
        ("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
        ("text", pa.string()),
    ],
    "queries": [("query-id", pa.string()), ("query", pa.string()), ("language", pa.string())],
    "qrels": [("query-id", pa.string()), ("corpus-id", pa.string()), ("score", pa.int64())],
}


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A folder to fill that becomes `out` when the block ends well, and vanishes when it does not."""
    out = out.resolve()
    with alone_with(out, wait=False):
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise PruneBoardError(f"{out} exists already; delete it or choose another --out")
        unfinished = out.with_name(f".{out.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)  # left by a process that was killed
        try:
            unfinished.mkdir(parents=True)
            yield unfinished
            if out.exists():
                out.rmdir()  # empty, seen above
            unfinished.rename(out)
        except OSError as error:
            raise PruneBoardError(f"cannot write {out}: {error}") from error
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


class PageWriter:
    """Corpus rows, one page at a time; a row group is held, never the corpus."""

    def __init__(self, folder: Path) -> None:
        (folder / "corpus").mkdir()
        self._schema = _schema("corpus")
        self._writer = pq.ParquetWriter(folder / "corpus" / FILE, self._schema)
        self._rows: list[dict[str, Any]] = []

    def add(self, page: str, image: bytes, path: str | None, text: str) -> None:
        # The text is never null: mteb cannot make batches of a column with nulls.
        self._rows.append({"corpus-id": page, "image": {"bytes": image, "path": path}, "text": text})
        if len(self._rows) == ROW_GROUP:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(pa.Table.from_pylist(self._rows, self._schema))
            self._rows = []


def write_labels(
    folder: Path, queries: Mapping[str, str], languages: Mapping[str, str], qrels: Mapping[tuple[str, str], int]
) -> None:
    """Queries and judgements. The language column is there only if every query has one."""
    rows = {
        "queries": [{"query-id": q, "query": text, "language": languages.get(q)} for q, text in queries.items()],
        "qrels": [{"query-id": q, "corpus-id": page, "score": grade} for (q, page), grade in qrels.items()],
    }
    for part, content in rows.items():
        schema = _schema(part)
        if part == "queries" and len(languages) < len(queries):
            schema = _schema(part, without="language")
        (folder / part).mkdir()
        pq.write_table(pa.Table.from_pylist(content, schema), folder / part / FILE)


def write_readme(folder: Path, title: str, lines: Sequence[str], record: Mapping[str, Any]) -> None:
    """The card with the list of configs that `datasets` and mteb read, and `import.json`: what was asked and found."""
    configs = "".join(_CONFIG.format(part=part) for part in PARTS)
    text = f"---\nconfigs:\n{configs}---\n\n# {title}\n\n" + "\n".join(lines) + "\n"
    (folder / "README.md").write_text(text, encoding="utf-8")
    (folder / "import.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def png(image: Image.Image) -> bytes:
    """The picture without loss. Pages without colour are kept as grey, in half the time and room."""
    pixels = np.asarray(image)
    grey = bool((pixels[..., 0] == pixels[..., 1]).all() and (pixels[..., 1] == pixels[..., 2]).all())
    buffer = io.BytesIO()
    (image.getchannel(0) if grey else image).save(buffer, "PNG", compress_level=3)
    return buffer.getvalue()


def _schema(part: str, without: str | None = None) -> pa.Schema:
    fields = [(name, kind) for name, kind in _SCHEMAS[part] if name != without]
    features = {name: kind for name, kind in _FEATURES[part].items() if name != without}
    return pa.schema(fields, metadata={"huggingface": json.dumps({"info": {"features": features}})})
