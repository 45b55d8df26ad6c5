"""What a run was made of, written into its folder: so it can be submitted without the model, the pages or the methods.

stores.json            each data set's counts, languages and content hashes, and the key of its store
benchmark/             page ids and relevance, as tables
backbone.json          the retriever's card
methods.json           what each method is, with what it learned
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from harness.backbones.contract import Backbone
from harness.benchmarks.folder import Benchmark
from harness.benchmarks.suite import Suite
from harness.benchmarks.tables import pages_table, qrels_table
from harness.calibration.methods import thresholds
from harness.evaluation.config import Config
from harness.evaluation.made_by import files_of
from harness.evaluation.methods import Method
from harness.evaluation.run_folder import RunFolder
from harness.store.reader import Store
from pruners import Pruner, Window
from pruners.core.plugins import Entry


def write_record(
    run: RunFolder,
    config: Config,
    suite: Suite,
    backbone: Backbone,
    stores: Mapping[str, Store],
    methods: Sequence[Method],
    known: Mapping[str, Entry],
    made_by: Mapping[str, Mapping[str, str]],
) -> None:
    """`known` are the catalogue's entries, `made_by` says of each method what its results are made of."""
    run.write_json("stores.json", {task.name: _data_set(task, stores[task.name]) for task in suite.tasks})
    run.write_bytes("benchmark/pages.parquet", pages_table(suite.tasks))
    run.write_bytes("benchmark/qrels.parquet", qrels_table(suite.tasks))
    attention = getattr(backbone, "attention_path", None)
    facts = {"attention": attention, "benchmark": suite.name, "profile": config.profile}
    run.write_json("backbone.json", {**backbone.card.as_dict(), **facts})
    run.write_json("methods.json", {m.text: describe(m, known, made_by[m.text]) for m in methods})


def describe(method: Method, known: Mapping[str, Entry], made_by: Mapping[str, str]) -> dict[str, Any]:
    """A method in words and numbers. `composition` is what really ran: presets unfolded, windows bound."""
    pruner, declaration = method.pruner, method.pruner.declaration
    entry = known[pruner.name]
    return {
        "slug": method.slug,
        "name": pruner.name,
        "summary": entry.summary,
        "paper": declaration.paper,
        "output": declaration.output,
        "budget": pruner.budget_kind,
        "diagnostic": declaration.diagnostic,
        "needs": list(pruner.needs),
        "trials": method.trials,
        "native": method.native,
        "partner_of": method.partner_of,
        "parameters": _parameters(pruner),
        "composition": made_by["composition"],
        "thresholds": thresholds(pruner),
        "shared_bytes": pruner.shared_bytes,
        "source": entry.source,
        "file": entry.file.name if entry.source == "file" else None,
        "file_hash": made_by["code"] if files_of(pruner) else None,
        "made_by": dict(made_by),
    }


def _data_set(task: Benchmark, store: Store) -> dict[str, Any]:
    judged = [query for query in store.query_ids if any(grade > 0 for grade in task.qrels.get(query, {}).values())]
    return {
        "store": store.key,
        "revision": task.revision,
        "pinned": "nothing is pinned" if task.differs is None else list(task.differs) or "as pinned",
        "pages": len(task.page_ids),
        "queries": len(judged),
        "languages": sorted({task.languages.get(query, "") for query in judged} - {""}),
        "content": dict(task.content),
    }


def _parameters(pruner: Pruner) -> dict[str, Any]:
    fields = [f for f in dataclasses.fields(pruner) if not f.metadata.get("learned")]  # type: ignore[arg-type]
    return {f.name: _plain(getattr(pruner, f.name)) for f in fields}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, (Pruner, Window)) else value
