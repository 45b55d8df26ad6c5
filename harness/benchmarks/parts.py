"""Parts of data sets: some pages and queries of one, several as one, and a share held out for calibration.

A part is a data set like any other, with content hashes of what it holds. Held-out pages are drawn so that no query
asks for pages on both sides, and that pages which occur twice stay together: no evaluated page is calibrated on.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import replace

from harness.benchmarks.content import content_hashes, text_hash
from harness.benchmarks.data_set import DataSet
from harness.benchmarks.embedded import BenchmarkError

HELD_OUT_SHARE = 0.2
SEED = 42


def part(
    data_set: DataSet, name: str, pages: Collection[str], pairs: Collection[tuple[str, str]] | None = None
) -> DataSet:
    """These pages of a data set, with the queries whose relevant pages they are; or only these (query, page) pairs."""
    wanted = set(pages)
    kept = [i for i, page in enumerate(data_set.page_ids) if page in wanted]
    ids, files = tuple(data_set.page_ids[i] for i in kept), tuple(data_set.file_hashes[i] for i in kept)
    texts = None if data_set.texts is None else tuple(data_set.texts[i] for i in kept)
    qrels = {
        query: found
        for query, judged in data_set.qrels.items()
        if (found := {p: g for p, g in judged.items() if p in wanted and (pairs is None or (query, p) in pairs)})
    }
    queries = {query: text for query, text in data_set.queries.items() if query in qrels}
    languages = {query: language for query, language in data_set.languages.items() if query in queries}
    return replace(
        data_set,
        name=name,
        page_ids=ids,
        image=lambda i: data_set.image(kept[i]),
        queries=queries,
        qrels=qrels,
        file_hashes=files,
        texts=texts,
        content=content_hashes(ids, files, queries, languages, qrels, texts),
        languages=languages,
        mteb_task="",
        differs=None,
    )


def sample_pairs(data_set: DataSet, count: int, seed: int = SEED) -> DataSet:
    """`count` relevant (query, page) pairs, or all if there are fewer."""
    pairs = [(q, p) for q in data_set.queries for p, grade in data_set.qrels.get(q, {}).items() if grade > 0]
    drawn = set(random.Random(seed).sample(pairs, min(count, len(pairs))))
    return part(data_set, data_set.name, {page for _, page in drawn}, drawn)


def join(data_sets: Sequence[DataSet], name: str) -> DataSet:
    """Several data sets as one; ids get the name of their data set."""
    where = [(data_set, i) for data_set in data_sets for i in range(len(data_set.page_ids))]
    ids = tuple(f"{data_set.name}/{data_set.page_ids[i]}" for data_set, i in where)
    files = tuple(data_set.file_hashes[i] for data_set, i in where)
    texts = (
        None if any(t.texts is None for t in data_sets) else tuple(text for t in data_sets for text in t.texts or ())
    )
    queries = {f"{t.name}/{query}": text for t in data_sets for query, text in t.queries.items()}
    languages = {f"{t.name}/{query}": language for t in data_sets for query, language in t.languages.items()}
    qrels = {
        f"{t.name}/{query}": {f"{t.name}/{page}": grade for page, grade in judged.items()}
        for t in data_sets
        for query, judged in t.qrels.items()
    }
    return DataSet(
        name=name,
        page_ids=ids,
        image=lambda i: where[i][0].image(where[i][1]),
        queries=queries,
        qrels=qrels,
        file_hashes=files,
        texts=texts,
        content=content_hashes(ids, files, queries, languages, qrels, texts),
        languages=languages,
        dropped_queries=sum(data_set.dropped_queries for data_set in data_sets),
    )


def hold_out(data_set: DataSet, share: float = HELD_OUT_SHARE, seed: int = SEED) -> tuple[DataSet, DataSet]:
    """A share of a data set to calibrate on, and the rest to evaluate."""
    groups = _linked_pages(data_set)
    random.Random(seed).shuffle(groups)
    room = round(share * len(data_set.page_ids))
    aside: set[str] = set()
    for group in groups:
        if len(aside) + len(group) <= room:
            aside.update(group)
    held = part(data_set, f"{data_set.name}-held-out", aside)
    rest = part(data_set, f"{data_set.name}-rest", set(data_set.page_ids) - aside)
    if not held.queries or not rest.queries:
        raise BenchmarkError(
            f"no {share:.0%} of {data_set.name} can be held out: its queries tie {max(map(len, groups), default=0)} of "
            f"{len(data_set.page_ids)} pages together; name other pages with --calibration"
        )
    return held, rest


def _linked_pages(data_set: DataSet) -> list[list[str]]:
    """Pages that must stay together: relevant to one query, or the same image or text."""
    leader = {page: page for page in data_set.page_ids}

    def find(page: str) -> str:
        while leader[page] != page:
            leader[page] = page = leader[leader[page]]
        return page

    same: dict[str, list[str]] = {}
    for i, page in enumerate(data_set.page_ids):
        same.setdefault(data_set.file_hashes[i], []).append(page)
        if data_set.texts is not None and data_set.texts[i].strip():
            same.setdefault(text_hash(data_set.texts[i]), []).append(page)
    for linked in [*same.values(), *(list(judged) for judged in data_set.qrels.values())]:
        for page in linked[1:]:
            leader[find(page)] = find(linked[0])
    groups: dict[str, list[str]] = {}
    for page in data_set.page_ids:
        groups.setdefault(find(page), []).append(page)
    return list(groups.values())
