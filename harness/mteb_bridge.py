"""The bridge back: mteb searches a pruned page index by its own protocol, scores it and writes its own result files.

A store is replayed, never encoded again, and its scores are those of `harness evaluate`, bit for bit: pages whose
scores are equal but for rounding would else come in another order. What is indexed are visual tokens only; the name of
the experiment says so.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import datasets
import mteb
import numpy as np
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models import ModelMeta
from mteb.models.model_meta import ScoringFunction

from harness.benchmarks.folder import Benchmark
from harness.benchmarks.known import known
from harness.benchmarks.mteb_tasks import DEFAULT, mteb_query_id
from harness.evaluation.methods import Method
from harness.evaluation.scores import Job, TaskScores, gold_queries, load_queries, score_task
from harness.metrics.retention import GoldPairs
from harness.progress import Progress
from harness.store.reader import Store
from pruners.core.apply import SEED
from pruners.core.contract import Diagnostic, Pruner
from pruners.core.errors import PruneBoardError

INDEXED = "visual"


@dataclass(frozen=True)
class Index:
    """A page index of one data set, as its scores `[queries, pages]` in the order of the store."""

    task: Benchmark
    store: Store
    scores: np.ndarray

    @cached_property
    def rows(self) -> dict[tuple[str, str], int]:
        """mteb's language and query id -> row of `scores`."""
        found = {}
        for row, query in enumerate(self.store.query_ids):
            language = self.task.languages.get(query, DEFAULT)
            found[language, mteb_query_id(language, query) if self.task.task else query] = row
        return found


class Replay:
    """A retriever in the eyes of mteb (its `SearchProtocol`). Several indexes: one for each corpus of a task."""

    def __init__(self, indexes: Sequence[Index], meta: ModelMeta) -> None:
        self._indexes = indexes
        self.mteb_model_meta = meta

    def index(self, corpus: datasets.Dataset, *, hf_subset: str, **others: Any) -> None:
        """Nothing is left to do but to see that mteb's pages are those of the store."""
        ours, theirs = set(self._at(hf_subset).store.page_ids), set(map(str, corpus["id"]))
        if ours != theirs:
            odd = sorted(ours ^ theirs)[0]
            raise PruneBoardError(f"mteb's corpus and the store differ in {len(ours ^ theirs)} pages, such as {odd!r}")

    def search(
        self, queries: datasets.Dataset, *, hf_subset: str, top_k: int, **others: Any
    ) -> dict[str, dict[str, float]]:
        """The best `top_k` pages of each query. Queries without a text are left out, as everywhere."""
        at = self._at(hf_subset)
        ids = np.array(at.store.page_ids, dtype=object)
        last_first = np.argsort(ids)[::-1]  # trec_eval's order of ties, so that a cut keeps what it would rank first
        found = {}
        for query, text in zip(queries["id"], queries["text"], strict=True):
            if text is None or not text.strip():
                continue
            if (hf_subset, query) not in at.rows:
                raise PruneBoardError(f"the store of {at.task.name} has no query {query!r} ({hf_subset})")
            scores = at.scores[at.rows[hf_subset, query]][last_first]
            best = np.argsort(-scores, kind="stable")[:top_k]
            found[query] = dict(zip(ids[last_first[best]].tolist(), scores[best].tolist(), strict=True))
        return found

    def _at(self, subset: str) -> Index:
        if len(self._indexes) == 1:
            return self._indexes[0]
        return next(index for index in self._indexes if subset in index.task.languages.values())


def replay(
    task: Benchmark, store: Store, pruner: Pruner | None, budget: float = 1.0, *, seed: int = SEED, trial: int = 0
) -> Replay:
    """One data set's index under a pruner that is ready to run, at a budget; or the full one. For `mteb.evaluate`."""
    methods = [] if pruner is None else [Method(str(pruner), pruner, trial + 1)]
    scores = _scores(task, store, methods, (budget,), seed, 1, lambda pages: None)
    if pruner is None:
        return Replay([Index(task, store, scores.full)], model_meta(store, experiment(None, 1.0, seed)))
    if scores.failures:
        raise PruneBoardError(scores.failures[str(pruner)])
    about = experiment(pruner, budget, seed, trial if pruner.trials > 1 else None)
    return Replay([Index(task, store, scores.by_method[str(pruner)][trial, 0])], model_meta(store, about))


def experiment(pruner: Pruner | None, budget: float, seed: int, trial: int | None = None) -> dict[str, Any]:
    """What was done to the index, as mteb's `experiment_kwargs`."""
    about = {"pruner": "none" if pruner is None else str(pruner), "budget": budget, "seed": seed, "indexed": INDEXED}
    return about | ({} if trial is None else {"trial": trial})


def model_meta(store: Store, about: Mapping[str, Any]) -> ModelMeta:
    """mteb's own description of the retriever where it has one, with what was done to its index as an experiment."""
    identity, checkpoint = store.manifest.identity["backbone"], str(store.manifest.about.get("checkpoint", ""))
    told = {"revision": identity["revision"], "experiment_kwargs": dict(about)}
    registered = {meta.name: meta for meta in mteb.get_model_metas()}
    if checkpoint in registered:
        return registered[checkpoint].model_copy(update=told)
    own = {
        "name": f"pruneboard/{identity['name']}",
        "embed_dim": store.dim,
        "modalities": ["text", "image"],
        "model_type": ["late-interaction"],
        "similarity_fn_name": ScoringFunction.MAX_SIM,
    }
    return ModelMeta.create_empty(overwrites={**own, **told})


def mteb_task(parts: Sequence[Benchmark]) -> Any:
    """mteb's own task where the data sets came from one, else a task of its kind around a data set of one's own."""
    if parts[0].task in known()["tasks"]:
        task = mteb.get_task(parts[0].task)
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


def _split(own: Benchmark, subset: str) -> dict[str, Any]:
    queries = [query for query in own.queries if own.languages.get(query, DEFAULT) == subset]
    return {
        "corpus": datasets.Dataset.from_dict({"id": list(own.page_ids)}),
        "queries": datasets.Dataset.from_dict({"id": queries, "text": [own.queries[query] for query in queries]}),
        "relevant_docs": {query: dict(own.qrels[query]) for query in queries if own.qrels.get(query)},
        "top_ranked": None,
    }


def write_results(
    folder: Path,
    tasks: Sequence[Benchmark],
    stores: Mapping[str, Store],
    methods: Sequence[Method],
    budgets: Sequence[float],
    seed: int,
    workers: int,
    progress: Progress,
) -> None:
    """mteb's result files of the full model and of every method, trial and budget. Diagnostics are no retrievers."""
    ranked = [method for method in methods if not isinstance(method.pruner, Diagnostic)]
    grouped: dict[str, list[Benchmark]] = {}
    for task in tasks:
        grouped.setdefault(task.task or task.name, []).append(task)
    for name, parts in grouped.items():
        pages = sum(len(part.page_ids) for part in parts)
        with progress(f"{name}: score for mteb", total=pages, done=0) as advance:
            # all methods, as in the evaluation: rounding depends on what merged vectors are multiplied together
            scores = [_scores(part, stores[part.name], methods, budgets, seed, workers, advance) for part in parts]
        cells = [(None, 0, 0), *((m, t, b) for m in ranked for t in range(m.trials) for b in range(len(budgets)))]
        judged = mteb_task(parts)
        with progress(f"{name}: mteb", total=len(cells), done=0) as advance:
            for method, trial, b in cells:
                found = [s.full if method is None else s.by_method[method.text][trial, b] for s in scores]
                indexes = [Index(p, stores[p.name], f) for p, f in zip(parts, found, strict=True)]
                about = experiment(None, 1.0, seed)
                if method is not None:
                    about = experiment(method.pruner, budgets[b], seed, trial if method.trials > 1 else None)
                _evaluate(judged, Replay(indexes, model_meta(indexes[0].store, about)), folder)
                advance(1)
        judged.unload_data()


def _scores(
    task: Benchmark,
    store: Store,
    methods: Sequence[Method],
    budgets: Sequence[float],
    seed: int,
    workers: int,
    advance: Callable[[int], None],
) -> TaskScores:
    gold = GoldPairs.of(task.qrels, store.query_ids, store.page_ids)
    queries = load_queries(store, range(len(store.query_ids)))
    job = Job(store, tuple(methods), tuple(budgets), seed, queries, gold_queries(gold.queries, gold.pages))
    return score_task(job, workers, advance)


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
