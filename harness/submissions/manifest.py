"""Benchmarks that the project itself knows: what a pinned benchmark of that name must hold.

`minidocs` by its own manifest; ViDoRe and its kin by `harness/benchmarks/known.json`, written from mteb's metadata.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from harness.benchmarks.embedded import EMBEDDED, NAMES
from harness.benchmarks.known import known
from harness.submissions.schema import BenchmarkFacts, DataSetFacts


def expected(name: str) -> dict[str, DataSetFacts] | None:
    """The data sets of a known benchmark, with all that is known of them; None for others."""
    if name in NAMES:
        manifest = json.loads((EMBEDDED / "manifest.json").read_text(encoding="utf-8"))
        parts = ((f"{part}/{data_set}", hashes) for part in NAMES[name] for data_set, hashes in manifest[part].items())
        return {name: _embedded(name, hashes) for name, hashes in parts}
    facts = known()
    if name in facts["benchmarks"]:
        return {task: _of_mteb(task, facts["tasks"][task]) for task in facts["benchmarks"][name]}
    return None


def differences(benchmark: BenchmarkFacts) -> list[tuple[str, str]] | None:
    """Where a pinned benchmark is not the known one of its name: a field, and a sentence. None if nothing is known."""
    wanted = expected(benchmark.name)
    if wanted is None:
        return None
    held = {data_set.name: data_set for data_set in benchmark.data_sets}
    found = [(name, "is missing") for name in wanted if not _parts(name, held)]
    for name, data_set in held.items():
        task = name if name in wanted else name.partition("/")[0]
        if task not in wanted:
            found.append((name, "is no data set of this benchmark"))
        elif task == name:
            found += [
                (f"{name}.{what}", f"is {getattr(data_set, what)}, {value} is known")
                for what, value in wanted[name].model_dump().items()
                if value not in (None, ()) and getattr(data_set, what) not in (None, (), value)
            ]
    return found


def _parts(task: str, held: Mapping[str, DataSetFacts]) -> list[str]:
    """A task whose languages have pages of their own is several data sets, `task/language`."""
    return [name for name in held if name == task or name.startswith(f"{task}/")]


def _embedded(name: str, hashes: Mapping[str, str]) -> DataSetFacts:
    return DataSetFacts(name=name, corpus=hashes["corpus"], query_texts=hashes["queries"], qrels=hashes["qrels"])


def _of_mteb(task: str, facts: Mapping[str, Any]) -> DataSetFacts:
    subsets = facts["subsets"]
    content = facts.get("content", {}).get(task, {})
    return DataSetFacts(
        name=task,
        revision=facts["revision"],
        pages=next(iter(subsets.values()))["pages"],
        languages=tuple(sorted(subsets)) if len(subsets) > 1 else (),
        corpus=content.get("corpus"),
        query_texts=content.get("queries"),
        qrels=content.get("qrels"),
    )
