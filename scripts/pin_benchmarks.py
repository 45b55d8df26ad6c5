"""Write harness/benchmarks/known.json again: what mteb says of the benchmarks that are known by name.

    python scripts/pin_benchmarks.py                       # names, revisions and counts, from the installed mteb
    python scripts/pin_benchmarks.py --content vidore-v1   # and hashes of what is read; needs the data

Counts are of mteb's task metadata and descriptive statistics, which are files of that package: no network is needed.
Hashes of content that are already pinned stay, unless the task has another revision now.
"""

from __future__ import annotations

import harness.compat  # noqa: F401

import argparse
import json
from typing import Any

import mteb

from harness.benchmarks.known import MANIFEST, known
from harness.files import library_versions, write_atomically

BENCHMARKS = {
    "vidore-v1": "ViDoRe(v1)",
    "vidore-v2": "ViDoRe(v2)",
    "vidore-v3": "ViDoRe(v3)",
    "vidore-v3.1": "ViDoRe(v3.1)",
    "jina-vdr": "JinaVDR",
}
SINGLE = {
    "real-mm-rag": [f"RealMMRAG{part}Retrieval" for part in ("FinReport", "FinSlides", "TechReport", "TechSlides")],
    "miracl-vision": ["MIRACLVisionRetrieval"],
    "vdr-multilingual": ["VDRMultilingualRetrieval"],
}
"""Tasks that mteb gathers in no benchmark. MMDocIR is not among them: its queries rank the pages of one document each,
not a corpus."""
FRENCH = ("VidoreTabfquadRetrieval", "VidoreShiftProjectRetrieval")
"""mteb marks them as English; they are French tables and reports, asked about in French."""


def describe(task: Any, trained_on: set[str]) -> dict[str, Any]:
    """One task as known.json has it."""
    about, (split,) = task.metadata, task.eval_splits
    statistics = about.descriptive_stats[split]
    parts = statistics.get("hf_subset_descriptive_stats") or {"default": statistics}
    languages = {"default": ["fra-Latn"]} if about.name in FRENCH else about.hf_subsets_to_langscripts
    subsets = {}
    for subset, codes in languages.items():
        text = parts[subset]["queries_text_statistics"]
        queries = round(text["total_text_length"] / text["average_text_length"])
        subsets[subset] = {
            "languages": codes,
            "pages": parts[subset]["num_samples"] - queries,
            "queries": queries,
            "characters": text["total_text_length"],
            "qrels": parts[subset]["relevant_docs_statistics"]["num_relevant_docs"],
        }
    images = [part["documents_image_statistics"]["unique_images"] for part in (statistics, *parts.values())]
    return {
        "dataset": about.dataset["path"],
        "revision": about.dataset["revision"],
        "public": bool(about.is_public),
        "main_score": about.main_score,
        "colpali_in_domain": about.name in trained_on,
        "shared_corpus": len(set(images)) == 1,
        **({"superseded_by": task.superseded_by} if task.superseded_by else {}),
        **({"page_texts": True} if any(part.get("documents_text_statistics") for part in parts.values()) else {}),
        "subsets": subsets,
    }


def gather() -> dict[str, Any]:
    """Everything but the hashes of content."""
    trained_on = mteb.get_model_meta("vidore/colpali-v1.3").training_datasets
    tasks = {ours: list(mteb.get_benchmark(theirs).tasks) for ours, theirs in BENCHMARKS.items()}
    tasks |= {ours: [mteb.get_task(name) for name in names] for ours, names in SINGLE.items()}
    return {
        "source": f"task metadata and descriptive statistics of mteb {library_versions(['mteb'])['mteb']}",
        "benchmarks": {ours: [t.metadata.name for t in found if t.metadata.is_public] for ours, found in tasks.items()},
        "tasks": {t.metadata.name: describe(t, trained_on) for found in tasks.values() for t in found},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Pin what is known of benchmarks.")
    parser.add_argument(
        "--content", action="append", default=[], help="benchmark or task whose data is read and hashed"
    )
    chosen = parser.parse_args().content
    before = known()["tasks"] if MANIFEST.exists() else {}
    found = gather()
    for name, task in found["tasks"].items():
        old = before.get(name, {})
        if "content" in old and old["revision"] == task["revision"]:
            task["content"] = old["content"]
    for name in chosen:
        from harness.benchmarks.mteb_tasks import load_task

        for task_name in found["benchmarks"].get(name, [name]):
            found["tasks"][task_name]["content"] = {part.name: dict(part.content) for part in load_task(task_name)}
    write_atomically(MANIFEST, (json.dumps(found, indent=1) + "\n").encode())
    print(f"{len(found['tasks'])} tasks -> {MANIFEST}")


if __name__ == "__main__":
    main()
