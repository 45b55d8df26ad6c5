"""The pages and queries of a data set out of a store that holds them, as a store of its own: found by id, not encoded.

Where a shard would be the same, it is linked and takes no room.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.benchmarks.data_set import DataSet
from harness.progress import Progress
from harness.store.encoded_page import EncodedPage
from harness.store.format import StoreError
from harness.store.mending import mend, require_whole
from harness.store.part import Part
from harness.store.reader import Store
from harness.store.writer import StoreWriter


def select(
    source: Store,
    folder: Path,
    identity: Mapping[str, Any],
    data_set: DataSet,
    part: Part,
    *,
    repair: bool = False,
    progress: Progress,
) -> Path:
    """Write the store `folder`, of the data set's pages and queries; with `repair` what is damaged of it, too."""
    name, page_ids, query_ids = data_set.name, data_set.page_ids, list(data_set.queries)
    pages, queries = ({id_: i for i, id_ in enumerate(ids)} for ids in (source.page_ids, source.query_ids))
    _check(source, name, "pages", page_ids, pages)
    _check(source, name, "queries", query_ids, queries)
    hashes = source.image_hashes
    # imported vectors have no images; within one store an id is as good to tell pages apart
    images = {id_: hashes[i] or f"{source.key} {id_!r}" for id_, i in pages.items()}
    about = {"checkpoint": source.folder.name, "pages": len(page_ids), "queries": len(query_ids)}
    settings: dict[str, Any] = {"about": about, "part": part, "vector_dtype": source.manifest.vector_dtype}
    with StoreWriter(folder, identity, page_ids, shard_pages=source.manifest.shard_pages, **settings) as writer:
        if damaged := writer.damaged():
            require_whole(source, source.manifest.files)  # shards are linked: what is damaged here may be there, too
            mend(writer, damaged, repair)
        writer.adopt(source.folder, images.__getitem__)
        wanted = writer.wanted()
        require_whole(source, source.files_of(map(pages.__getitem__, wanted), queries=writer.wants_queries))
        with progress(f"{name}: look up", total=len(wanted), done=0) as advance:
            for id_ in wanted:
                page, prompt = source.page(pages[id_]), source.prompt(pages[id_])
                writer.add(id_, EncodedPage(page.vectors, page.grid, page.signals, prompt), image=images[id_])
                advance(1)
        if writer.wants_queries:
            writer.add_queries(query_ids, [source.query(queries[id_]) for id_ in query_ids])
    return folder


def _check(source: Store, name: str, what: str, wanted: Sequence[str], there: Collection[str]) -> None:
    missing = [id_ for id_ in wanted if id_ not in there]
    if missing:
        first = next(iter(there))
        raise StoreError(
            f"the store {source.folder} has no vectors of {len(missing)} of the {len(wanted)} {what} of {name}, "
            f"the first is {missing[0]!r}; its own ids are like {first!r}. Import the vectors with the benchmark's ids"
        )
