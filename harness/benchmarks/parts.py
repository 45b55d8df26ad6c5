"""Parts of data sets: some pages and queries of one, several as one, and a share held out for calibration.

A part is a data set like any other, with content hashes of what it holds. Held-out pages are drawn so that no query
asks for pages on both sides, and that pages which occur twice stay together: no evaluated page is calibrated on.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import replace

from harness.benchmarks.content import content_hashes, text_hash
from harness.benchmarks.embedded import BenchmarkError
from harness.benchmarks.folder import Benchmark

HELD_OUT_SHARE = 0.2
SEED = 42


def part(
    task: Benchmark, name: str, pages: Collection[str], pairs: Collection[tuple[str, str]] | None = None
) -> Benchmark:
    """These pages of a data set, with the queries whose relevant pages they are; or only these (query, page) pairs."""
    wanted = set(pages)
    kept = [i for i, page in enumerate(task.page_ids) if page in wanted]
    ids, files = tuple(task.page_ids[i] for i in kept), tuple(task.file_hashes[i] for i in kept)
    texts = None if task.texts is None else tuple(task.texts[i] for i in kept)
    qrels = {
        query: found
        for query, judged in task.qrels.items()
        if (found := {p: g for p, g in judged.items() if p in wanted and (pairs is None or (query, p) in pairs)})
    }
    queries = {query: text for query, text in task.queries.items() if query in qrels}
    languages = {query: language for query, language in task.languages.items() if query in queries}
    return replace(
        task,
        name=name,
        page_ids=ids,
        image=lambda i: task.image(kept[i]),
        queries=queries,
        qrels=qrels,
        file_hashes=files,
        texts=texts,
        content=content_hashes(ids, files, queries, languages, qrels, texts),
        languages=languages,
        task="",
        differs=None,
    )


def sample_pairs(task: Benchmark, count: int, seed: int = SEED) -> Benchmark:
    """`count` relevant (query, page) pairs, or all if there are fewer."""
    pairs = [(q, p) for q in task.queries for p, grade in task.qrels.get(q, {}).items() if grade > 0]
    drawn = set(random.Random(seed).sample(pairs, min(count, len(pairs))))
    return part(task, task.name, {page for _, page in drawn}, drawn)


def join(tasks: Sequence[Benchmark], name: str) -> Benchmark:
    """Several data sets as one; ids get the name of their data set."""
    where = [(task, i) for task in tasks for i in range(len(task.page_ids))]
    ids = tuple(f"{task.name}/{task.page_ids[i]}" for task, i in where)
    files = tuple(task.file_hashes[i] for task, i in where)
    texts = None if any(t.texts is None for t in tasks) else tuple(text for t in tasks for text in t.texts or ())
    queries = {f"{t.name}/{query}": text for t in tasks for query, text in t.queries.items()}
    languages = {f"{t.name}/{query}": language for t in tasks for query, language in t.languages.items()}
    qrels = {
        f"{t.name}/{query}": {f"{t.name}/{page}": grade for page, grade in judged.items()}
        for t in tasks
        for query, judged in t.qrels.items()
    }
    return Benchmark(
        name=name,
        page_ids=ids,
        image=lambda i: where[i][0].image(where[i][1]),
        queries=queries,
        qrels=qrels,
        file_hashes=files,
        texts=texts,
        content=content_hashes(ids, files, queries, languages, qrels, texts),
        languages=languages,
        dropped_queries=sum(task.dropped_queries for task in tasks),
    )


def hold_out(task: Benchmark, share: float = HELD_OUT_SHARE, seed: int = SEED) -> tuple[Benchmark, Benchmark]:
    """A share of a data set to calibrate on, and the rest to evaluate."""
    groups = _linked_pages(task)
    random.Random(seed).shuffle(groups)
    room = round(share * len(task.page_ids))
    aside: set[str] = set()
    for group in groups:
        if len(aside) + len(group) <= room:
            aside.update(group)
    held = part(task, f"{task.name}-held-out", aside)
    rest = part(task, f"{task.name}-rest", set(task.page_ids) - aside)
    if not held.queries or not rest.queries:
        raise BenchmarkError(
            f"no {share:.0%} of {task.name} can be held out: its queries tie {max(map(len, groups), default=0)} of "
            f"{len(task.page_ids)} pages together; name other pages with --calibration"
        )
    return held, rest


def _linked_pages(task: Benchmark) -> list[list[str]]:
    """Pages that must stay together: relevant to one query, or the same image or text."""
    leader = {page: page for page in task.page_ids}

    def find(page: str) -> str:
        while leader[page] != page:
            leader[page] = page = leader[leader[page]]
        return page

    same: dict[str, list[str]] = {}
    for i, page in enumerate(task.page_ids):
        same.setdefault(task.file_hashes[i], []).append(page)
        if task.texts is not None and task.texts[i].strip():
            same.setdefault(text_hash(task.texts[i]), []).append(page)
    for linked in [*same.values(), *(list(judged) for judged in task.qrels.values())]:
        for page in linked[1:]:
            leader[find(page)] = find(linked[0])
    groups: dict[str, list[str]] = {}
    for page in task.page_ids:
        groups.setdefault(find(page), []).append(page)
    return list(groups.values())
