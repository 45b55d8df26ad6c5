"""What a run was made of, written into its folder: so it can be submitted without the model, the pages or the methods.

stores.json            each data set's counts, languages and content hashes, and the key of its store
benchmark/             page ids and relevance, as tables
backbone.json          the retriever's card
methods.json           what each method is, with what it learned
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.backbones.contract import Backbone
from harness.benchmarks.folder import Benchmark
from harness.benchmarks.suite import Suite
from harness.benchmarks.tables import pages_table, qrels_table
from harness.calibration.methods import thresholds
from harness.evaluation.config import Config
from harness.evaluation.methods import Method
from harness.evaluation.run_folder import RunFolder
from harness.store.reader import Store
from pruners import Pruner, Window, catalogue
from pruners.core.contract import Preset
from pruners.core.plugins import Entry, file_and_rest


def write_record(
    run: RunFolder, config: Config, suite: Suite, backbone: Backbone, stores: Mapping[str, Store], methods: list[Method]
) -> None:
    run.write_json("stores.json", {task.name: _data_set(task, stores[task.name]) for task in suite.tasks})
    run.write_bytes("benchmark/pages.parquet", pages_table(suite.tasks))
    run.write_bytes("benchmark/qrels.parquet", qrels_table(suite.tasks))
    attention = getattr(backbone, "attention_path", None)
    facts = {"attention": attention, "benchmark": suite.name, "profile": config.profile}
    run.write_json("backbone.json", {**backbone.card.as_dict(), **facts})
    files = [file for text in config.pruners if (file := file_and_rest(text)[0])]
    known = catalogue(dict.fromkeys(files))
    run.write_json("methods.json", {m.text: describe(m, known) for m in methods if m.failure is None})


def describe(method: Method, known: Mapping[str, Entry]) -> dict[str, Any]:
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
        "composition": str(pruner.made if isinstance(pruner, Preset) else pruner),
        "thresholds": thresholds(pruner),
        "shared_bytes": pruner.shared_bytes,
        "source": entry.source,
        "file": entry.file.name if entry.source == "file" else None,
        "file_hash": _files_hash([known[name].file for name in _names(pruner) if known[name].source == "file"]),
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


def _names(pruner: Pruner) -> set[str]:
    return {pruner.name}.union(*(_names(part) for part in pruner.parts()))


def _files_hash(files: Sequence[Path]) -> str | None:
    digests = [hashlib.sha256(file.read_bytes()).digest() for file in sorted(set(files))]
    return f"sha256-{hashlib.sha256(b''.join(digests)).hexdigest()}" if digests else None
