"""Content identity: the one scheme by which what was really read is hashed, whatever it was read with.

A corpus counts by its page ids and encoded images, queries by id, language and text, qrels by their grades in any
order (mteb's loader does not keep it). Pages are compared across data sets by their pixels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image


def file_hash(encoded: bytes) -> str:
    """Of a page's image as it is stored."""
    return hashlib.sha256(encoded).hexdigest()


def corpus_hash(page_ids: Iterable[str], file_hashes: Iterable[str]) -> str:
    """Of pages as they are stored: ids and encoded images, in order."""
    return _sha256(f"{page}\0{file}" for page, file in zip(page_ids, file_hashes, strict=True))


def content_hashes(
    page_ids: Iterable[str],
    file_hashes: Iterable[str],
    queries: Mapping[str, str],
    languages: Mapping[str, str],
    qrels: Mapping[str, Mapping[str, int]],
    texts: Iterable[str] | None = None,
) -> dict[str, str]:
    """The hashes of a data set; that of the pages' texts only where it has them."""
    return {
        "corpus": corpus_hash(page_ids, file_hashes),
        "queries": queries_hash(queries, languages),
        "qrels": qrels_hash(qrels),
        **({} if texts is None else {"texts": _sha256(map(text_hash, texts))}),
    }


def queries_hash(queries: Mapping[str, str], languages: Mapping[str, str]) -> str:
    """Of queries with their languages, in order."""
    return _sha256(f"{query}\0{languages.get(query, '')}\0{text}" for query, text in queries.items())


def qrels_hash(qrels: Mapping[str, Mapping[str, int]]) -> str:
    """Of grades, in any order."""
    return _sha256(
        sorted(f"{query}\0{page}\0{grade}" for query, pages in qrels.items() for page, grade in pages.items())
    )


def image_hash(image: Image.Image) -> str:
    """Of decoded pixels: the same page in another file format is the same page."""
    digest = hashlib.sha256(f"{image.mode} {image.size}".encode())
    digest.update(image.tobytes())
    return f"sha256-{digest.hexdigest()}"


def text_hash(text: str) -> str:
    """Of a page's text, for backbones that read nothing else; never the same as a picture's."""
    return f"sha256-text-{hashlib.sha256(text.encode()).hexdigest()}"


def _sha256(lines: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode() + b"\n")
    return f"sha256-{digest.hexdigest()}"
