"""A store, a pruner and a budget as a retriever that mteb can search.

A store is replayed, never encoded again, and its scores are those of `harness evaluate`, bit for bit: pages whose
scores are equal but for rounding would else come in another order. Whether prompt tokens are indexed too, as the stock
retriever does, is part of the experiment's name (`indexed`).
"""

from __future__ import annotations

import harness.compat  # noqa: F401

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import datasets
import mteb
import numpy as np
from mteb.models import ModelMeta
from mteb.models.model_meta import ScoringFunction

from harness.benchmarks.data_set import DataSet
from harness.benchmarks.mteb_tasks import DEFAULT, mteb_query_id
from harness.evaluation.config import Config, Profile
from harness.evaluation.methods import Method
from harness.mteb_bridge.score_matrices import score_matrices
from harness.store.reader import Store
from pruners.core.contract import Pruner
from pruners.core.errors import PruneBoardError
from pruners.core.seed import SEED


@dataclass(frozen=True)
class Index:
    """A page index of one data set, as its scores `[queries, pages]` in the order of the store."""

    data_set: DataSet
    store: Store
    scores: np.ndarray

    @cached_property
    def rows(self) -> dict[tuple[str, str], int]:
        """mteb's language and query id -> row of `scores`."""
        found = {}
        for row, query in enumerate(self.store.query_ids):
            language = self.data_set.languages.get(query, DEFAULT)
            found[language, mteb_query_id(language, query) if self.data_set.mteb_task else query] = row
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
                raise PruneBoardError(f"the store of {at.data_set.name} has no query {query!r} ({hf_subset})")
            scores = at.scores[at.rows[hf_subset, query]][last_first]
            best = np.argsort(-scores, kind="stable")[:top_k]
            found[query] = dict(zip(ids[last_first[best]].tolist(), scores[best].tolist(), strict=True))
        return found

    def _at(self, subset: str) -> Index:
        if len(self._indexes) == 1:
            return self._indexes[0]
        return next(index for index in self._indexes if subset in index.data_set.languages.values())


def replay(
    data_set: DataSet,
    store: Store,
    pruner: Pruner | None,
    budget: float = 1.0,
    *,
    seed: int = SEED,
    trial: int = 0,
    profile: Profile = "visual",
) -> Replay:
    """One data set's index under a pruner that is ready to run, at a budget; or the full one. For `mteb.evaluate`."""
    config = Config(budgets=(budget,), seed=seed, profile=profile)
    methods = [] if pruner is None else [Method(str(pruner), pruner, trial + 1)]
    scores = score_matrices(data_set, store, methods, config, 1, lambda pages: None)
    if pruner is None:
        return Replay([Index(data_set, store, scores.full)], model_meta(store, experiment(config, None, 1.0)))
    if scores.failures:
        raise PruneBoardError(scores.failures[str(pruner)])
    about = experiment(config, pruner, budget, trial if pruner.trials > 1 else None)
    return Replay([Index(data_set, store, scores.by_method[str(pruner)][trial, 0])], model_meta(store, about))


def experiment(config: Config, pruner: Pruner | None, budget: float, trial: int | None = None) -> dict[str, Any]:
    """What was done to the index, as mteb's `experiment_kwargs`."""
    method = "none" if pruner is None else str(pruner)
    about = {"pruner": method, "budget": budget, "seed": config.seed, "indexed": config.profile}
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
