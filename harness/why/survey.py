"""Why scores fall, over many queries: which patches queries match on a whole page, and whether a method keeps them."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from harness.evaluation.methods import FULL
from harness.progress import Progress
from harness.why.hits import NOWHERE, hits_of
from harness.why.kept_vectors import SUBSET
from harness.why.record import Record, gold_pages

MOST_PAIRS = 300
BLANK = 0.01
"""A patch whose pixels' standard deviation (the signal `ink`, of brightness from 0 to 1) is below this is blank."""


@dataclass(frozen=True)
class Survey:
    """Means over pairs of a query and a relevant page. Shares are None where they mean nothing."""

    pairs: int
    lost: float
    """Similarity that a query's token lost."""
    hits_kept: float | None
    """Share of the patches that tokens match on the whole page and that the method kept; of subsets only."""
    blank_kept: float | None
    """Share of blank patches among those kept, among those that queries match, and on the page."""
    blank_hit: float | None
    blank_page: float | None


def survey(record: Record, method: str, budget: float, seed: int, progress: Progress) -> Survey | None:
    """Of at most 300 pairs, drawn from all data sets whose pages are there."""
    pairs = [
        (name, query, page)
        for name, pages in record.pages.items()
        if record.run.files.has(name, record.slug(method))
        for query in pages.data_set.queries
        for page in gold_pages(pages.data_set, query)
    ]
    if not pairs or method == FULL:
        return None
    drawn = random.Random(seed).sample(pairs, min(MOST_PAIRS, len(pairs)))
    lost, kept_hits, blank = [], [], []
    with progress("look at hits", total=len(drawn), done=0) as advance:
        for name, query_id, page_id in drawn:
            pages = record.pages[name]
            index = pages.index(page_id)
            page, kept = pages.page(index), record.kept(name, method, index, budget)
            query = pages.query(query_id)
            own = np.array([not token.template for token in query.tokens])
            hits = hits_of(query.vectors, page.vectors, kept, pages.prompt(index))
            lost.append(float(hits.lost[own].mean()) if own.any() else 0.0)
            places = hits.before[own & (hits.before != NOWHERE)]
            if kept.kind == SUBSET and len(places):
                kept_hits.append(float((kept.labels[places] >= 0).mean()))
                if "ink" in page.signals:
                    empty = page.signals["ink"][0].numpy() < BLANK
                    blank.append((empty[kept.labels >= 0].mean(), empty[places].mean(), empty.mean()))
            advance(1)
    shares = [float(share) for share in np.mean(blank, axis=0)] if blank else [None, None, None]
    return Survey(len(drawn), float(np.mean(lost)), float(np.mean(kept_hits)) if kept_hits else None, *shares)
