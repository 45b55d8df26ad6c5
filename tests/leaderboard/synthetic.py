"""Submissions to build sites from: made-up measured ones with per-query rows, and the SAP paper's printed figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import harness
from harness.submissions.report import CheckedSubmission
from harness.submissions.schema import Submission
from harness.submissions.tables import scores_of
from pruners.core.catalog import catalogue, kind

BUDGETS = (0.05, 0.1, 0.2)
DATA_SETS = {
    **{f"minidocs-v1/{name}": ("",) for name in ("articles", "charts", "reports", "slides", "tables")},
    **{f"minidocs-v2/{name}": ("en", "fr") for name in ("briefs", "surveys")},
}
PAPER = json.loads(next(Path(harness.__file__).parent.rglob("sap_paper.json")).read_text(encoding="utf-8"))
TITLES = {"random": "Random", "eos_adaptive": "Adaptive-EOS", "cluster_merge": "Cluster-Merge", "sap": "SAP"}
WINDOW = {"window": "2-3", "curve": [0.71, 0.78, 0.83, 0.8, 0.62, 0.55], "median": 0.745, "boundary": 4, "pairs": 500}


def track_of(name: str) -> str:
    known = catalogue().get(name)
    if known is None:
        return "query-agnostic subset"
    if "diagnostic" in kind(known):
        return "diagnostic"
    return {"merged": "merging", "quantised": "quantised"}.get(kind(known).split(",")[0], "query-agnostic subset")


def per_query(quality: float, seed: int, queries: int, trials: int = 1) -> pd.DataFrame:
    """Rows of one method. The full model's depend on nothing but the query, so that all methods share a run."""
    rows = []
    own = np.random.default_rng([seed, 7])
    for d, (data_set, languages) in enumerate(DATA_SETS.items()):
        for lang, language in enumerate(languages):
            full = np.random.default_rng([d, lang]).choice([0.0, 0.63, 1.0], queries, p=[0.05, 0.1, 0.85])
            for budget in (*BUDGETS, 1.0):
                for trial in range(trials if budget < 1 else 1):
                    kept = own.random(queries) < 1 - (1 - quality) * (0.2 / budget) ** 0.5 / (1 + (budget == 1) * 1e9)
                    for q in range(queries):
                        value = float(full[q] * kept[q])
                        rows.append((data_set, language, budget, trial, f"q{q:03d}", *[value] * 5, 0.9, []))
    columns = ["data_set", "language", "budget", "trial", "query", *(f"ndcg@{k}" for k in (1, 5, 10, 50, 100))]
    return pd.DataFrame(rows, columns=[*columns, "score_retention", "top_10"])


def cells_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    cells = []
    for (data_set, language, budget), rows in frame.groupby(["data_set", "language", "budget"]):
        cells.append(
            {
                "data_set": data_set,
                "language": language,
                "budget": budget,
                "realised": min(1.0, budget + 0.002),
                "vectors_per_page": 196 * budget,
                "bytes_per_page": 196 * budget * 256,
                "prune_ms": 2.5,
                "ndcg": {k: float(rows[f"ndcg@{k}"].mean()) for k in ("1", "5", "10", "50", "100")},
                "score_retention": 0.9 if budget < 1 else 1.0,
            }
        )
    return cells


def measured(name: str, quality: float, seed: int, *, queries: int = 30, **changes: Any) -> tuple[dict, pd.DataFrame]:
    """A valid measured submission as JSON, and its per-query rows."""
    frame = per_query(quality, seed, queries, 2 if name == "random" else 1)
    calibrated = {"window": WINDOW} if name.startswith("sap") else {}
    record = {
        "format": 1,
        "id": f"{name}-{seed:04d}",
        "claim": "self-reported",
        "origin": {"submitter": "the project", "submitted": "2026-11-16", "code": "https://example.org/code"},
        "benchmark": {
            "name": "minidocs",
            "data_sets": [
                {"name": n, "languages": [x for x in ls if x], "pages": 40, "queries": queries}
                for n, ls in DATA_SETS.items()
            ],
        },
        "backbone": {
            "name": "nano",
            "checkpoint": "pruneboard/nano",
            "dtype": "float32",
            "attention": "sdpa",
            "query_template": "{query}",
            "profile": "visual",
            "layers": 6,
            "dim": 128,
        },
        "method": {
            "name": name,
            "expression": name,
            "title": name,
            "track": track_of(name),
            "adaptive": name in ("docpruner", "sap_adaptive"),
            "version": "0.1.0",
            "calibrated": calibrated,
        },
        "cells": cells_of(frame),
        "environment": {"python": "3.11", "platform": "Linux", "libraries": {}, "code": "abc"},
        "per_query": "sha256-" + "0" * 32,
    }
    for path, value in changes.items():
        *parents, last = path.split("__")
        place: Any = record
        for parent in parents:
            place = place[parent]
        place[last] = value
    return record, frame


def stored(name: str, codec: str, quality: float, seed: int, part: float, **more: Any) -> tuple[dict, pd.DataFrame]:
    """A measured submission whose vectors a codec stores, in `part` of the float16 bytes."""
    facts = {"expression": codec, "bytes_per_vector": round(256 * part)}
    text = {"method__expression": f"{name} | {codec}", "method__track": "quantised", "codec": facts}
    record, frame = measured(f"{name}--{codec}", quality, seed, **text, **more)
    for cell in record["cells"]:
        cell["bytes_per_page"] *= part if cell["budget"] < 1 else 1
    return record, frame


def share(record: dict, shared: int) -> None:
    """Give a submission's index so many bytes once for all pages; each page bears its share."""
    record["method"]["shared_bytes"] = shared
    pages = {data_set["name"]: data_set["pages"] for data_set in record["benchmark"]["data_sets"]}
    for cell in record["cells"]:
        if cell["budget"] < 1:
            cell["bytes_per_page"] += shared / pages[cell["data_set"]]


def nano_submissions(queries: int = 30, most: int = 99) -> list[tuple[dict, pd.DataFrame]]:
    """Built-in methods with made-up figures, best and worst far apart."""
    names = sorted(e.name for e in catalogue().values() if e.name not in ("adaptive", "merge"))
    return [measured(n, 0.99 - 0.018 * (i * 7 % 27), i, queries=queries) for i, n in enumerate(names[:most])]


def paper_submissions() -> list[tuple[dict, None]]:
    """Every (backbone, benchmark, method) of the paper's per-data-set tables."""
    found: dict[tuple, list[dict]] = {}
    for cell in PAPER["per_dataset"]:
        found.setdefault((cell["model"], cell["benchmark"], cell["method"]), []).append(cell)
    return [(_reported(*key, cells), None) for key, cells in found.items()]


def _reported(model: str, benchmark: str, method: str, printed: list[dict]) -> dict:
    names = list(dict.fromkeys(cell["dataset"] for cell in printed))
    full = {cell["dataset"]: cell["full_ndcg_at_5"] for cell in printed}
    cells = [{"data_set": n, "budget": 1.0, "ndcg": {"5": full[n]}, "score_retention": 1.0} for n in names]
    cells += [
        {
            "data_set": cell["dataset"],
            "budget": cell["gamma"],
            "ndcg": {"5": cell["ndcg_at_5"]},
            "retention": cell["ndcg_at_5_retention_pct"],
            "score_retention": cell["score_retention"],
        }
        for cell in printed
    ]
    slug = benchmark.replace("_", "-")
    return {
        "format": 1,
        "id": f"sap-paper-{slug}-{model}-{method}",
        "claim": "reported",
        "origin": {"submitter": "Liu et al.", "submitted": "2026-11-16", "note": "per-data-set tables"},
        "benchmark": {"name": slug, "data_sets": [{"name": n} for n in names]},
        "backbone": {"name": model.replace("_", "-"), "checkpoint": model},
        "method": {
            "name": method,
            "expression": TITLES.get(method, method),
            "title": TITLES.get(method, method),
            "track": "merging" if "merge" in method else "query-agnostic subset",
            "adaptive": "adaptive" in method,
        },
        "cells": cells,
    }


def entries(submissions: list[tuple[dict, pd.DataFrame | None]]) -> list[CheckedSubmission]:
    return [entry(record, frame, "reported" if frame is None else "recomputed") for record, frame in submissions]


def entry(record: dict, frame: pd.DataFrame | None = None, status: str | None = None) -> CheckedSubmission:
    submission = Submission.model_validate_json(json.dumps(record, default=str))
    scores = None if frame is None else scores_of(frame)
    return CheckedSubmission(Path(f"{submission.id}.json"), submission, scores, status or submission.claim)
