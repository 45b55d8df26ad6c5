"""Folders as `harness experiment all` writes them, whose rows are what the SAP paper printed for its three backbones.

Only R(l) is made up (the paper shows it as a drawing): a plateau, and a fall where the paper says the region begins.
"""

import json
from pathlib import Path
from typing import Any

from harness import paper
from harness.experiments import printed

OURS = {"sap": "sap", "random": "random", "eos_adaptive": "docpruner", "kmeans": "kmeans(renormalize=false)"}
GROUPS = {theirs: ours for ours, theirs in printed.BENCHMARKS.items()}
TASKS = {theirs: ours for ours, theirs in printed.DATA_SETS.items()}
SETTINGS = {"pairs": 500, "seed": 42, "trials": None, "calibration": None, "window": None, "dtype": None}


def write_paper(root: Path) -> list[Path]:
    """The three backbones on ViDoRe v1 and v2."""
    return [write_folder(root, backbone) for backbone in paper.MODELS]


def write_folder(root: Path, backbone: str, benchmarks: tuple[str, ...] = ("vidore-v1", "vidore-v2")) -> Path:
    folder = root / f"{backbone}--{'-'.join(benchmarks)}--0123456789"
    folder.mkdir(parents=True)
    (chosen,) = paper.of_model("sr_guided_windows", backbone)
    window = "{}-{}".format(*chosen["window"])
    data_sets = [
        ours for ours in printed.DATA_SETS if ("vidore-v2" if "Vidore2" in ours else "vidore-v1") in benchmarks
    ]
    about = {
        "settings": {**SETTINGS, "backbone": backbone, "benchmark": "+".join(benchmarks)},
        "backbone": {"name": backbone, "revision": f"rev-{backbone}-0123456789", "layers": chosen["layers"]},
        "benchmark": {
            data_set: {"corpus": f"sha256-{data_set}", "queries": "q", "qrels": "g"} for data_set in data_sets
        },
        "window": {"source": "sr-guided", "window": window},
        "environment": {"code": "0" * 40},
    }
    made: dict[str, tuple[list[dict], dict]] = {
        "main-table": (_averages(backbone), {}),
        "budget-curve": (_averages(backbone), {}),
        "sr-ndcg": (_cells(backbone), {}),
        "window-ablation": (_ablation(backbone, window), {}),
        "layer-curve": _curve(chosen, window),
    }
    if paper.of_model("base_probe", backbone):
        facts = {"window": window, "l_star": chosen["l_star"], "base": "the base model it was made of"}
        made["base-probe"] = (_probe(backbone), facts)
    for name, (rows, facts) in made.items():
        kept = [row for row in rows if row.get("benchmark", benchmarks[0]) in benchmarks]
        record = {"experiment": name, **about, "columns": {}, "facts": facts, "notes": [], "rows": kept}
        (folder / f"{name}.json").write_text(json.dumps(record))
    return folder


def change(folder: Path, experiment: str | None = None, **changes: Any) -> None:
    """Other values in what a folder wrote: `pairs=3` a setting, `card={...}`, `window={...}` or `benchmark={...}`."""
    for path in [folder / f"{experiment}.json"] if experiment else sorted(folder.glob("*.json")):
        record = json.loads(path.read_text())
        for name, value in changes.items():
            if name in SETTINGS and not isinstance(value, dict):
                record["settings"][name] = value
            else:
                record["backbone" if name == "card" else name].update(value)
        path.write_text(json.dumps(record))


def _row(cell: dict, backbone: str) -> dict:
    value = cell["ndcg_at_5_retention_pct"]
    return {
        "benchmark": GROUPS[cell["benchmark"]],
        "method": OURS[cell["method"]],
        "budget": cell["gamma"],
        "realised": cell["gamma"],
        "full_ndcg@5": cell["full_ndcg_at_5"],
        "score_retention": cell["score_retention"],
        "ndcg@5": cell["ndcg_at_5"],
        "retention": value,
        "retention_interval": [value - 1, value + 1],
        "paper": value,
        "difference": 0.0,
    }


def _averages(backbone: str) -> list[dict]:
    rows = [{"data_set": "average", **_row(cell, backbone)} for cell in paper.of_model("averages", backbone)]
    return sorted(rows, key=lambda row: (row["benchmark"], row["method"], row["budget"]))


def _cells(backbone: str) -> list[dict]:
    return [{"data_set": TASKS[c["dataset"]], **_row(c, backbone)} for c in paper.of_model("per_dataset", backbone)]


def _ablation(backbone: str, window: str) -> list[dict]:
    rows = []
    for table in paper.of_model("window_ablation", backbone):
        group = GROUPS.get(table["benchmark"], "mean")
        for name, value in table["ndcg_at_5_retention_pct"].items():
            place = {"benchmark": group, "budget": table["gamma"], "window": name, "layers": "0"}
            rows.append({**place, "retention": value, "paper": value, "difference": 0.0})
    for cell in paper.of_model("averages", backbone):
        if cell["method"] == "sap":
            place = {"benchmark": GROUPS[cell["benchmark"]], "budget": cell["gamma"], "window": "SR-guided"}
            rows.append({**place, "layers": window, "retention": cell["ndcg_at_5_retention_pct"]})
    return rows


def _curve(chosen: dict, window: str) -> tuple[list[dict], dict]:
    rows: list[dict[str, Any]] = []
    for layer in range(chosen["layers"]):
        value = 0.80 if layer >= chosen["l_star"] else 0.85 + 0.002 * layer
        rows.append({"layer": layer, "score_retention": value, "standard_error": 0.004, "region": ""})
    facts = {"pairs": 500, "median": 0.86, "l_star": chosen["l_star"], "window": window, "snap": chosen["snap"]}
    return rows, facts


def _probe(backbone: str) -> list[dict]:
    rows = []
    for table in paper.of_model("base_probe", backbone):
        for attention, key in (("fine-tuned", "fine_tuned"), ("base", "base")):
            within, after = table[key]
            rows.append({"budget": table["gamma"], "attention": attention, "in_window": within, "after": after})
    return rows
