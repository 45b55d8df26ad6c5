"""One public task with the full model, indexed as the stock retriever does it, against MTEB's published figure."""

from __future__ import annotations

import harness.compat  # noqa: F401

from pathlib import Path
from typing import Any

import numpy as np

from harness.backbones.contract import Backbone
from harness.benchmarks.benchmark import load_benchmark
from harness.benchmarks.data_set import DataSet
from harness.benchmarks.embedded import BenchmarkError
from harness.encode import encode
from harness.evaluation.config import Config, Profile
from harness.evaluation.pruned_pages import Job
from harness.evaluation.scores import load_queries
from harness.evaluation.tally import tally
from harness.metrics.ranking import Evaluator
from harness.metrics.results_table import data_set_mean
from harness.progress import Advance, Progress
from harness.store.reader import Store
from harness.submissions.checks import MANY_QUERIES, TOLERANCE_FEW, TOLERANCE_MANY
from harness.verification.checks import NotPossibleError
from harness.verification.published import ALL, published_for
from pruners.core.errors import PruneBoardError

CUTOFF = "ndcg@5"


def figure_of(
    backbone: Backbone, task: str, stores: Path, progress: Progress, batch_size: int | None = None
) -> dict[str, Any]:
    """The full model's NDCG@5 on a task, and MTEB's if it has one, in %, over the languages that both have."""
    try:
        benchmark = load_benchmark(task)
    except BenchmarkError as error:
        raise NotPossibleError(str(error)) from error
    known = published_for(backbone.card).get(task, {})
    ours: list[float] = []
    theirs: list[float] = []
    queries = 0
    for data_set in benchmark.data_sets:
        store = encode(backbone, data_set, stores, batch_size=batch_size, progress=progress)
        profile: Profile = "native" if len(store.prompt(0)) else "visual"  # what is no patch is a vector already
        with progress(f"{data_set.name}: score", total=len(store), done=0) as advance:
            values, ids = _per_query(data_set, store, Config(profile=profile), advance)
        languages = [ALL if ALL in known else data_set.languages.get(query, ALL) for query in ids]
        for language in dict.fromkeys(languages):
            mine = values[[spoken == language for spoken in languages]]
            if language in known or not known:
                ours.append(float(mine.mean()))
                theirs.append(known[language][0] if known else float("nan"))
                queries += len(mine)
    if not ours:
        raise PruneBoardError(f"{task} was read in other languages than MTEB has figures of")
    return {
        "task": task,
        "ours": 100 * float(data_set_mean(ours)),
        "official": 100 * float(data_set_mean(theirs)) if known else None,
        "tolerance": TOLERANCE_MANY if queries >= MANY_QUERIES else TOLERANCE_FEW,
        "queries": queries,
    }


def judge(figure: dict[str, Any]) -> str:
    """In words; an error if it is not MTEB's figure."""
    here = f"NDCG@5 {figure['ours']:.2f} on {figure['task']} ({figure['queries']} queries)"
    if figure["official"] is None:
        raise NotPossibleError(f"{here}; there is no published figure for this checkpoint to compare it with")
    told = f"{here}, MTEB {figure['official']:.2f}; up to {figure['tolerance']:g} points apart is chance"
    if abs(figure["ours"] - figure["official"]) > figure["tolerance"]:
        raise PruneBoardError(told)
    return told


def _per_query(data_set: DataSet, store: Store, config: Config, advance: Advance) -> tuple[np.ndarray, list[str]]:
    evaluator = Evaluator(data_set.qrels, store.query_ids, store.page_ids)
    queries = load_queries(store, range(len(store.query_ids)), config.device)
    job = Job(store, (), config.budgets, config.seed, queries, {}, config.profile)
    found = tally(job, evaluator, 1, advance)
    return evaluator.measure(found.ranks(found.cells(None).ravel()))[CUTOFF][0], evaluator.query_ids
