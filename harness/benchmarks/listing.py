"""What `harness list benchmarks` shows: embedded data sets, and those that mteb knows. Imports nothing heavy."""

from __future__ import annotations

import json
from typing import Any

from harness.benchmarks.embedded import EMBEDDED
from harness.benchmarks.known import CALIBRATION_SETS, cached, known

CODES = {"english": "eng", "french": "fra"}


def rows() -> list[dict[str, Any]]:
    """One row a task. Queries in several languages are counted together."""
    facts = known()
    named = [(name, task) for name, tasks in facts["benchmarks"].items() for task in tasks]
    listed = {task for _, task in named}
    private = [("", task) for task in facts["tasks"] if task not in listed]
    sets: list[dict[str, Any]] = [
        {"benchmark": name, "task": what, "pages": None, "queries": None, "languages": [], "revision": "", "cached": ""}
        for name, what in CALIBRATION_SETS.items()
    ]
    return [*_embedded(), *(_known(name, task) for name, task in [*named, *private]), *sets]


def _known(benchmark: str, task: str) -> dict[str, Any]:
    facts = known()["tasks"][task]
    subsets = facts["subsets"]
    pages = [counts["pages"] for counts in subsets.values()]
    return {
        "benchmark": benchmark,
        "task": task,
        "pages": pages[0] if facts["shared_corpus"] else sum(pages),
        "queries": sum(counts["queries"] for counts in subsets.values()),
        "languages": [code.partition("-")[0] for counts in subsets.values() for code in counts["languages"]],
        "revision": facts["revision"],
        "cached": cached(task),
        "dataset": facts["dataset"],
        "public": facts["public"],
        "colpali_in_domain": facts["colpali_in_domain"],
        "main_score": facts["main_score"],
        "superseded_by": facts.get("superseded_by"),
        "page_texts": facts.get("page_texts", False),
    }


def _embedded() -> list[dict[str, Any]]:
    pinned = json.loads((EMBEDDED / "manifest.json").read_text(encoding="utf-8"))
    return [
        {
            "benchmark": benchmark,
            "task": name,
            "pages": facts["pages"],
            "queries": facts["queries"],
            "languages": [CODES[language] for language in facts["languages"]],
            "revision": "",
            "cached": "yes",
        }
        for benchmark, data_sets in pinned.items()
        for name, facts in ((name, entry["counts"]) for name, entry in data_sets.items())
    ]
