"""All scores of a data set, for mteb, which ranks pages itself. Memory grows with pages here, in an evaluation not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from harness.benchmarks.data_set import DataSet
from harness.evaluation.config import Config
from harness.evaluation.methods import Method
from harness.evaluation.pruned_pages import Job
from harness.evaluation.scores import gold_queries, load_queries, spread_scores
from harness.evaluation.tally import portions
from harness.metrics.ranking import Evaluator
from harness.store.reader import Store


@dataclass(frozen=True)
class ScoreMatrices:
    """`full [queries, pages]`, each method's `[trials, budgets, queries, pages]`, and what it keeps of each page."""

    full: np.ndarray
    full_vectors: np.ndarray
    by_method: dict[str, np.ndarray]
    vectors: dict[str, np.ndarray]
    failures: dict[str, str]


def score_matrices(
    data_set: DataSet,
    store: Store,
    methods: Sequence[Method],
    config: Config,
    workers: int,
    advance: Callable[[int], None],
) -> ScoreMatrices:
    """Scores of one data set, computed as an evaluation does."""
    queries = load_queries(store, range(len(store.query_ids)), config.device)
    gold = gold_queries(Evaluator(data_set.qrels, store.query_ids, store.page_ids))
    job = Job(store, tuple(methods), config.budgets, config.seed, queries, gold, config.profile)
    pages = []
    with spread_scores(job, portions(range(len(store))), workers) as results:
        for some in results:
            pages += some
            advance(len(some))
    scores = np.stack([page.scores for page in pages], axis=-1)
    vectors = np.stack([page.vectors for page in pages], axis=-1)
    failures = {text: why for page in reversed(pages) for text, why in page.failures.items()}
    found = ScoreMatrices(scores[0], np.array([page.full_vectors for page in pages]), {}, {}, failures)
    start = 0
    for method in methods:
        shape = method.trials, len(method.budgets(config.budgets))
        stop = start + shape[0] * shape[1]
        if method.text not in failures:
            found.by_method[method.text] = scores[1 + start : 1 + stop].reshape(*shape, *scores.shape[1:])
            found.vectors[method.text] = vectors[start:stop].reshape(*shape, len(pages))
        start = stop
    return found
