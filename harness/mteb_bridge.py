"""The bridge back: mteb searches a pruned page index by its own protocol, scores it and writes its own result files.

A store is replayed, never encoded again. Scores are computed here in the plainest way, page by page, and not by the
sweep of `harness/scoring`: so that agreement with `harness evaluate` checks the sweep and the measures as well.
What is indexed are visual tokens only; the name of the experiment says so.
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
import torch
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models import ModelMeta
from mteb.models.model_meta import ScoringFunction

from harness.benchmarks.folder import Benchmark
from harness.benchmarks.known import known
from harness.benchmarks.mteb_tasks import DEFAULT, query_id
from harness.evaluation.methods import Method
from harness.metrics.retention import GoldPairs
from harness.progress import Progress
from harness.store.reader import Store
from pruners import Merged, Subset, prune
from pruners.core.contract import Diagnostic, Pruner
from pruners.core.errors import PruneBoardError

INDEXED = "visual tokens"


@dataclass(frozen=True)
class Index:
    """A page index of one data set: `vectors(i)` are those that were kept of page i."""

    task: Benchmark
    store: Store
    vectors: Callable[[int], torch.Tensor]

    @cached_property
    def queries(self) -> dict[str, int]:
        return {query: i for i, query in enumerate(self.store.query_ids)}


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
        asked = [query for query, text in zip(queries["id"], queries["text"], strict=True) if text and text.strip()]
        rows = [at.queries.get(query_id(hf_subset, query), at.queries.get(query)) for query in asked]
        if None in rows:
            raise PruneBoardError(f"the store of {at.task.name} has no vectors of query {asked[rows.index(None)]!r}")
        scores = max_sim(
            [at.store.query(row) for row in rows if row is not None], map(at.vectors, range(len(at.store)))
        )
        ids = np.array(at.store.page_ids, dtype=object)
        last_first = np.argsort(ids)[::-1]  # trec_eval's order of ties, so that a cut keeps what it would rank first
        found = {}
        for query, row in zip(asked, scores[:, last_first], strict=True):
            best = np.argsort(-row, kind="stable")[:top_k]
            found[query] = dict(zip(ids[last_first[best]].tolist(), row[best].tolist(), strict=True))
        return found

    def _at(self, subset: str) -> Index:
        if len(self._indexes) == 1:
            return self._indexes[0]
        return next(index for index in self._indexes if subset in index.task.languages.values())


def max_sim(queries: Sequence[torch.Tensor], pages: Any) -> np.ndarray:
    """`[queries, pages]`: for each query token the best page vector, summed over the query; float32, no padding."""
    tokens = torch.cat([query.float() for query in queries])
    starts = np.cumsum([0, *(len(query) for query in queries)])[:-1]
    return np.stack([np.add.reduceat((tokens @ page.float().T).amax(1).numpy(), starts) for page in pages], axis=1)


def full_index(task: Benchmark, store: Store) -> Index:
    return Index(task, store, lambda i: store.page(i).vectors)


def pruned_indexes(
    task: Benchmark, store: Store, pruner: Pruner, budgets: Sequence[float], *, seed: int, trial: int = 0
) -> list[Index]:
    """One index a budget; pages are pruned once for all of them."""
    gold: dict[int, list[torch.Tensor]] = {}
    if isinstance(pruner, Diagnostic):
        pairs = GoldPairs.of(task.qrels, store.query_ids, store.page_ids)
        for query, page in zip(pairs.queries.tolist(), pairs.pages.tolist(), strict=True):
            gold.setdefault(page, []).append(store.query(query))
    results: list[Subset | Merged] = []
    for i in range(len(store)):
        queries = gold.get(i, []) if isinstance(pruner, Diagnostic) else None
        results.append(prune(pruner, store.page(i), budgets, seed=seed, trial=trial, queries=queries))

    def at(b: int) -> Callable[[int], torch.Tensor]:
        def vectors(i: int) -> torch.Tensor:
            result = results[i]
            if isinstance(result, Subset):
                return store.page(i).vectors[torch.from_numpy(result.order[: result.counts[b]].astype(np.int64))]
            return result.vectors[b]

        return vectors

    return [Index(task, store, at(b)) for b in range(len(budgets))]


def model_meta(store: Store, experiment: Mapping[str, Any]) -> ModelMeta:
    """mteb's own description of the retriever where it has one, with what was done to its index as an experiment."""
    identity, checkpoint = store.manifest.identity["backbone"], str(store.manifest.about.get("checkpoint", ""))
    told = {"revision": identity["revision"], "experiment_kwargs": dict(experiment)}
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
    progress: Progress,
) -> None:
    """mteb's result files of the full model and of every method, trial and budget. Diagnostics are no retrievers."""
    ranked = [method for method in methods if not isinstance(method.pruner, Diagnostic)]
    grouped: dict[str, list[Benchmark]] = {}
    for task in tasks:
        grouped.setdefault(task.task or task.name, []).append(task)
    for name, parts in grouped.items():
        task = mteb_task(parts)
        total = 1 + sum(method.trials for method in ranked)
        with progress(f"{name}: mteb", total=total, done=0) as advance:
            full = [full_index(part, stores[part.name]) for part in parts]
            _evaluate(task, full, {"pruner": "none", "budget": 1.0, "seed": seed}, folder)
            advance(1)
            for method in ranked:
                for trial in range(method.trials):
                    made = [
                        pruned_indexes(part, stores[part.name], method.pruner, budgets, seed=seed, trial=trial)
                        for part in parts
                    ]
                    for b, budget in enumerate(budgets):
                        about = {"pruner": str(method.pruner), "budget": budget, "seed": seed}
                        about |= {"trial": trial} if method.trials > 1 else {}
                        _evaluate(task, [indexes[b] for indexes in made], about, folder)
                    advance(1)
        task.unload_data()


def _evaluate(task: Any, indexes: Sequence[Index], experiment: Mapping[str, Any], folder: Path) -> None:
    retriever = Replay(indexes, model_meta(indexes[0].store, {**experiment, "indexed": INDEXED}))
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
