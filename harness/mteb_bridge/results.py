"""mteb's result files of a whole evaluation: every method, trial and budget scored by mteb's own code."""

from __future__ import annotations

import harness.compat  # noqa: F401

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import datasets
import mteb
import numpy as np
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata

from harness.benchmarks.data_set import DataSet
from harness.benchmarks.known import known
from harness.benchmarks.mteb_tasks import DEFAULT
from harness.evaluation.config import Config
from harness.evaluation.methods import Method
from harness.evaluation.own_threshold import at_realised_ratio
from harness.mteb_bridge.score_matrices import ScoreMatrices, score_matrices
from harness.progress import Progress
from harness.store.reader import Store

from .replay import Index, Replay, experiment, model_meta

Cell = tuple[list[np.ndarray], dict[str, Any]]
"""Scores of each corpus of a task, and the experiment they belong to."""


def write_results(
    folder: Path,
    data_sets: Sequence[DataSet],
    stores: Mapping[str, Store],
    methods: Sequence[Method],
    config: Config,
    workers: int,
    progress: Progress,
) -> None:
    """mteb's result files of the full model and of every method, trial and budget."""
    grouped: dict[str, list[DataSet]] = {}
    for data_set in data_sets:
        grouped.setdefault(data_set.mteb_task or data_set.name, []).append(data_set)
    for name, parts in grouped.items():
        bound: list[Method] = []
        scores: list[ScoreMatrices] = []
        for part in parts:
            store = stores[part.name]
            # all methods, as in the evaluation: rounding depends on what merged vectors are multiplied together
            bound, _ = at_realised_ratio(methods, methods, store, config.seed, part.name, progress, workers)
            with progress(f"{part.name}: score for mteb", total=len(store), done=0) as advance:
                scores.append(score_matrices(part, store, bound, config, workers, advance))
        cells = list(_cells(bound, scores, config))
        judged = mteb_task(parts)
        with progress(f"{name}: mteb", total=len(cells), done=0) as advance:
            for found, about in cells:
                indexes = [Index(part, stores[part.name], s) for part, s in zip(parts, found, strict=True)]
                _evaluate(judged, Replay(indexes, model_meta(indexes[0].store, about)), folder)
                advance(1)
        judged.unload_data()


def _cells(methods: Sequence[Method], scores: Sequence[ScoreMatrices], config: Config) -> Iterator[Cell]:
    """Everything mteb is to score. Diagnostics are no retrievers; methods with a threshold of their own, and their
    partners, stand at the ratio that was really kept.
    """
    yield [s.full for s in scores], experiment(config, None, 1.0)
    for method in methods:
        if method.diagnostic:
            continue
        for trial in range(method.trials):
            for b, budget in enumerate(method.budgets(config.budgets)):
                kept = _realised(method, b, scores) if method.own_threshold or method.partner_of else budget
                about = experiment(config, method.pruner, kept, trial if method.trials > 1 else None)
                yield [s.by_method[method.text][trial, b] for s in scores], about


def _realised(method: Method, b: int, scores: Sequence[ScoreMatrices]) -> float:
    kept = sum(int(s.vectors[method.text][0, b].sum()) for s in scores)
    return round(kept / sum(int(s.full_vectors.sum()) for s in scores), 6)


def mteb_task(parts: Sequence[DataSet]) -> Any:
    """mteb's own task where the data sets came from one, else a task of its kind around a data set of one's own."""
    if parts[0].mteb_task in known()["tasks"]:
        task = mteb.get_task(parts[0].mteb_task)
        task.load_data()
        return task
    (own,) = parts
    subsets = sorted(set(own.languages.values())) or [DEFAULT]
    undetermined = ["und-Zyyy"]  # languages are known by name only
    about = TaskMetadata(
        name="".join(c if c.isalnum() else "_" for c in own.name),
        description="A data set of one's own.",
        reference=None,
        dataset={"path": own.name, "revision": own.content["corpus"]},
        type="DocumentUnderstanding",
        category="t2i",
        modalities=["text", "image"],
        eval_splits=["test"],
        eval_langs=dict.fromkeys(subsets, undetermined) if own.languages else undetermined,
        main_score="ndcg_at_5",
        bibtex_citation="",
    )
    task = type(about.name, (AbsTaskRetrieval,), {"metadata": about})()
    task.dataset = {subset: {"test": _split(own, subset)} for subset in subsets}
    task.data_loaded = True
    return task


def _split(own: DataSet, subset: str) -> dict[str, Any]:
    queries = [query for query in own.queries if own.languages.get(query, DEFAULT) == subset]
    return {
        "corpus": datasets.Dataset.from_dict({"id": list(own.page_ids)}),
        "queries": datasets.Dataset.from_dict({"id": queries, "text": [own.queries[query] for query in queries]}),
        "relevant_docs": {query: dict(own.qrels[query]) for query in queries if own.qrels.get(query)},
        "top_ranked": None,
    }


def _evaluate(task: Any, retriever: Replay, folder: Path) -> None:
    nothing_to_encode: Any = {"batch_size": 1}
    mteb.evaluate(
        retriever,
        task,
        cache=mteb.ResultCache(folder),
        overwrite_strategy="always",
        co2_tracker=False,
        show_progress_bar=False,
        encode_kwargs=nothing_to_encode,
    )
