"""What `harness list benchmarks` shows: embedded data sets, and those that mteb knows. Imports nothing heavy."""

from __future__ import annotations

from typing import Any

from pyarrow.parquet import ParquetFile

from harness.benchmarks.embedded import NAMES, data_set_folders
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
    }


def _embedded() -> list[dict[str, Any]]:
    found = []
    for name, parts in NAMES.items():
        for folder in data_set_folders(name) if parts == (name,) else []:
            files = {
                part: [ParquetFile(file) for file in sorted((folder / part).glob("test-*.parquet"))]
                for part in ("corpus", "queries")
            }
            count = {part: sum(file.metadata.num_rows for file in group) for part, group in files.items()}
            spoken = {str(row) for file in files["queries"] for row in file.read(columns=["language"])["language"]}
            found.append(
                {
                    "benchmark": name,
                    "task": folder.name,
                    "pages": count["corpus"],
                    "queries": count["queries"],
                    "languages": [CODES[language] for language in sorted(spoken)],
                    "revision": "",
                    "cached": "yes",
                }
            )
    return found
