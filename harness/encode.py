"""Pages and queries of a benchmark into a store: one forward pass a page, resumable, never twice.

The folder of a store is named by a key over everything that determines its content, so a store made with other
settings is never found by mistake.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from harness.backbones.batching import batch_size_for, in_batches
from harness.backbones.contract import TEXT_TOKENS, Backbone
from harness.backbones.made_with import made_with
from harness.backbones.store import StoreBackbone
from harness.benchmarks.content import image_hash, text_hash
from harness.benchmarks.data_set import DataSet
from harness.benchmarks.embedded import BenchmarkError
from harness.cache import default_root as default_root
from harness.encode_ahead import encode_ahead, works_ahead
from harness.encode_small import QUERY_BATCH, encode_in_processes
from harness.progress import Progress, quiet
from harness.store.encoded_page import EncodedPage
from harness.store.format import MANIFEST, Manifest, StoreError, read_manifest_file, store_key
from harness.store.mending import mend
from harness.store.part import WHOLE, Part
from harness.store.reader import Store
from harness.store.selection import select
from harness.store.sidecar import read_manifest
from harness.store.writer import SHARD_PAGES, StoreWriter
from pruners.core.errors import PruneBoardError

MOST_QUERY = 20_000
"""Characters of a query."""


def identity_of(backbone: Backbone, benchmark: DataSet) -> dict[str, Any]:
    """All that determines a store. A checkpoint counts by its revision (a commit or a hash), not by where it lies; so
    do the code and the libraries that encode.
    """
    parts = ("corpus", "queries", *(["texts"] if backbone.card.kind == TEXT_TOKENS else []))
    content = {part: benchmark.content[part] for part in parts}
    return {**made_by(backbone), "benchmark": {"name": benchmark.name, **content}}


def made_by(backbone: Backbone) -> dict[str, Any]:
    """The share of the backbone in what determines a store."""
    card = backbone.card.as_dict()
    card.pop("checkpoint")
    return {"backbone": card, "made_with": made_with(backbone)}


def store_folder(
    root: Path, backbone: Backbone, benchmark: DataSet, vector_dtype: str = "float16", shard_pages: int = SHARD_PAGES
) -> Path:
    """The folder of the store that `encode` would make. Vectors that were imported stay as they are."""
    if isinstance(backbone, StoreBackbone):
        vector_dtype, shard_pages = backbone.store.manifest.vector_dtype, backbone.store.manifest.shard_pages
    identity = identity_of(backbone, benchmark)
    key = store_key({**identity, "vector_dtype": vector_dtype, "shard_pages": shard_pages})
    return root / f"{_word(backbone.card.name)}--{_word(benchmark.name)}--{key}"


def encode(backbone: Backbone, benchmark: DataSet, root: Path, **options: Any) -> Store:
    """The finished store of a benchmark, encoding only what is not there yet. The options are those of a part."""
    return Store(encode_part(backbone, benchmark, root, WHOLE, **options))


def encode_part(
    backbone: Backbone,
    benchmark: DataSet,
    root: Path,
    part: Part,
    *,
    vector_dtype: str = "float16",
    shard_pages: int = SHARD_PAGES,
    batch_size: int | None = None,
    repair: bool = False,
    workers: int | None = None,
    progress: Progress = quiet,
    say: Callable[[str], None] = lambda text: None,
) -> Path:
    """Encode what is not there yet of one part of a benchmark's store; the store's folder. Whoever is last finishes it.

    `workers` processes (one a core) share the pages of a backbone too small to keep several threads busy, or make
    pages ready for one on a GPU. `say` is told if other code or libraries encoded the same pages before, and so it must
    be done again.
    """
    _check_queries(benchmark)
    if repair and part != WHOLE:
        raise StoreError("a store is mended as a whole, because any part may be damaged: leave --part away")
    if isinstance(backbone, StoreBackbone):
        folder = store_folder(root, backbone, benchmark)
        identity = identity_of(backbone, benchmark)
        return select(backbone.store, folder, identity, benchmark, part, repair=repair, progress=progress)
    read = page_reader(backbone, benchmark)
    folder = store_folder(root, backbone, benchmark, vector_dtype, shard_pages)
    if not (folder / MANIFEST).is_file():
        for before in list(_made_with_others(root, backbone, benchmark))[-1:]:
            say(before)
    index = {page: i for i, page in enumerate(benchmark.page_ids)}
    writer = StoreWriter(
        folder,
        identity_of(backbone, benchmark),
        benchmark.page_ids,
        about=_about(folder, backbone, benchmark, read, batch_size),
        vector_dtype=vector_dtype,
        shard_pages=shard_pages,
        part=part,
    )
    with writer:
        _check_batch_size(writer, batch_size)
        mend(writer, writer.damaged(), repair)
        for twin in _stores_of_the_same_pages(root, writer):
            writer.adopt(twin)
        wanted = writer.wanted()
        size = writer.manifest.about["batch_size"]
        # Batches restart with every shard: which pages share a batch then depends on the plan alone, not on where a run
        # was interrupted, and so do the last bits of their vectors.
        shards = [list(pages) for pages in writer.wanted_shards()]
        queries = benchmark.queries if writer.wants_queries else None
        total = sum(len(writer.manifest.pages_of(i)) for i in part.shards(writer.manifest.shard_count))
        what = f"{benchmark.name}: encode" + ("" if part == WHOLE else f" part {part}")
        with progress(what, total=total, done=total - len(wanted)) as advance:
            batches = [pages[i : i + size] for pages in shards for i in range(0, len(pages), size)]
            if (wanted or queries is not None) and getattr(backbone, "one_thread", False):
                hands = workers or os.cpu_count() or 1
                encode_in_processes(writer, backbone, lambda page: read(index[page]), batches, queries, hands, advance)
                queries = None
            else:
                done = 0
                if works_ahead(backbone):
                    done = encode_ahead(writer, backbone, read, batches, index.__getitem__, workers, advance)
                for pages in _after(shards, done):
                    _encode_shard(writer, backbone, read, pages, [index[page] for page in pages], size, advance)
        if queries is not None:
            _encode_queries(writer, backbone, benchmark, progress)
    return folder


PageReader = Callable[[int], tuple[Any, Callable[[], str]]]
"""The page at an index as the backbone wants it, and a function that hashes what was read."""


def page_reader(backbone: Backbone, benchmark: DataSet) -> PageReader:
    """Images for visual backbones, texts for those that read text; a benchmark that has none is refused."""
    if backbone.card.kind != TEXT_TOKENS:

        def read_image(index: int) -> tuple[Any, Callable[[], str]]:
            image = benchmark.image(index)
            return image, lambda: image_hash(image)

        return read_image
    if (texts := benchmark.texts) is None or not any(map(str.strip, texts)):
        raise BenchmarkError(
            f"{backbone.card.name} reads the text of pages, and {benchmark.name} has none. `harness import` keeps the "
            "text of PDFs (of scans with --ocr); or choose a visual backbone"
        )

    def read_text(index: int) -> tuple[Any, Callable[[], str]]:
        found = texts[index]
        # Nothing was read of a page without text; two such pages are the same only if they look the same.
        return found, lambda: text_hash(found) if found.strip() else image_hash(benchmark.image(index))

    return read_text


def _after(shards: list[list[str]], done: int) -> Iterator[list[str]]:
    """What is left of shards when their first pages are done."""
    for pages in shards:
        if len(pages) > done:
            yield pages[done:]
        done = max(0, done - len(pages))


def _encode_shard(
    writer: StoreWriter,
    backbone: Backbone,
    read: PageReader,
    pages: list[str],
    indices: list[int],
    size: int,
    advance: Any,
) -> None:
    hashes: list[str] = []

    def encode_batch(batch: Any) -> list[EncodedPage]:
        inputs = [read(i) for i in batch]
        encoded = backbone.encode_pages([page for page, _ in inputs])
        hashes.extend(digest() for _, digest in inputs)
        return encoded

    def halved(new_size: int) -> None:
        advance(0, note=f"out of memory: now {new_size} a batch")

    done = 0
    for encoded in in_batches(encode_batch, indices, size, lambda i: f"page {pages[i]!r}", halved):
        for page in encoded:
            writer.add(pages[done], page, image=hashes[done])
            done += 1
        advance(len(encoded))


def _encode_queries(writer: StoreWriter, backbone: Backbone, benchmark: DataSet, progress: Progress) -> None:
    ids, texts = list(benchmark.queries), list(benchmark.queries.values())
    vectors: list[torch.Tensor] = []
    with progress(f"{benchmark.name}: encode queries", total=len(ids), done=0) as advance:
        for encoded in in_batches(backbone.encode_queries, texts, QUERY_BATCH, lambda i: f"query {ids[i]!r}"):
            vectors += encoded
            advance(len(encoded))
    writer.add_queries(ids, vectors)


def _made_with_others(root: Path, backbone: Backbone, benchmark: DataSet) -> Iterator[str]:
    """A sentence for each finished store that differs only in what it was made with, the newest last."""
    wanted = identity_of(backbone, benchmark)
    ours = wanted.pop("made_with")
    stores = root.glob(f"{_word(backbone.card.name)}--{_word(benchmark.name)}--*/{MANIFEST}")
    for path in sorted(stores, key=lambda path: path.stat().st_mtime):
        try:
            theirs = read_manifest(path.parent)
        except StoreError:  # damaged, or of another release: it is not read, so nothing must be said of it
            continue
        before = dict(theirs.identity)
        made = before.pop("made_with", {})
        if before == wanted and theirs.complete:
            what = "code of the backbone" if made.get("libraries") == ours["libraries"] else "libraries"
            was = f" ({made['libraries']})" if what == "libraries" and made else ""
            yield (
                f"{benchmark.name} was encoded before with other {what}{was}; it is encoded again, because vectors may "
                f"differ. The older store, {path.parent}, is left as it is: delete it if you no longer need it"
            )


def _stores_of_the_same_pages(root: Path, writer: StoreWriter) -> list[Path]:
    """Other stores whose page shards would be the very same: benchmarks may share a corpus (ViDoRe's ESG reports)."""
    ours = writer.manifest
    if not writer.wanted_shards():
        return []
    twins = []
    for path in sorted(root.glob(f"*/{MANIFEST}")):
        if path.parent == writer.folder:
            continue
        try:
            theirs = read_manifest(path.parent)
        except StoreError:  # damaged, or of another release: not this store's business, and no help to it
            continue
        if _determines_pages(theirs) == _determines_pages(ours):
            twins.append(path.parent)
    return twins


def _determines_pages(manifest: Manifest) -> tuple[Any, ...]:
    benchmark = manifest.identity.get("benchmark", {})
    corpus = benchmark.get("corpus"), benchmark.get("texts")
    backbone = manifest.identity.get("backbone"), manifest.identity.get("made_with")
    return backbone, corpus, manifest.page_ids, manifest.vector_dtype, manifest.shard_pages, dict(manifest.libraries)


def _check_queries(benchmark: DataSet) -> None:
    """Attention grows with the square of a text: a document among the queries would take all memory."""
    for query, text in benchmark.queries.items():
        if len(text) > MOST_QUERY:
            raise BenchmarkError(
                f"{benchmark.name}: the query {query[:60]!r} has {len(text):,} characters, at most {MOST_QUERY:,} are "
                "read; is it a document? Leave it out, or cut it"
            )


def _check_batch_size(writer: StoreWriter, given: int | None) -> None:
    begun = writer.manifest.about.get("batch_size")
    if given not in (None, begun) and writer.wanted_shards():
        raise StoreError(
            f"{writer.folder} was begun with {begun} pages a batch, and the last bits of vectors may depend on it: "
            f"leave --batch-size away, or delete the folder to begin anew with {given}"
        )


def _about(
    folder: Path, backbone: Backbone, benchmark: DataSet, read: PageReader, batch_size: int | None
) -> dict[str, Any]:
    """What a person wants to know. The batch size is kept so that an interrupted run goes on with the same one."""
    if (folder / MANIFEST).is_file():
        return dict(read_manifest_file(folder).about)
    if batch_size is not None and batch_size < 1:
        raise PruneBoardError(f"a batch holds at least one page, not {batch_size}")
    return {
        "checkpoint": backbone.card.checkpoint,
        **_base(backbone),
        "device": str(getattr(backbone, "device", "unknown")),
        "attention": getattr(backbone, "attention_path", "not stated"),
        "pages": len(benchmark.page_ids),
        "queries": len(benchmark.queries),
        "dropped_queries": benchmark.dropped_queries,
        "batch_size": batch_size or batch_size_for(backbone, lambda: read(0)[0]),
    }


def _base(backbone: Backbone) -> dict[str, str]:
    """The base model of an adapter, and its commit (or the hash of its files)."""
    base = getattr(getattr(backbone, "checkpoint", None), "base", None)
    return {} if base is None else {"base": f"{base.name}@{base.revision}"}


def _word(text: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in text)
