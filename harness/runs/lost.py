"""Which queries a method loses: the first thing to look at when it is worse than hoped."""

from __future__ import annotations

import pandas as pd

from harness.evaluation.methods import FULL
from harness.metrics.ranking import TOP
from harness.metrics.results_table import HEADLINE
from harness.submissions.run_facts import FinishedRun

COLUMNS = ["data_set", "query", "full", "pruned", "difference", "gold", "best"]


def lost(run: FinishedRun, slug: str, budget: float) -> pd.DataFrame:
    """The queries whose NDCG@5 is lower than the full model's, those that lost most first."""
    judged = run.benchmark().judged
    frames = []
    for data_set in run.stores:
        if not run.files.has(data_set, slug):
            continue
        full = run.files.read_result(data_set, FULL).per_query.set_index("query")[HEADLINE]
        rows = run.files.read_result(data_set, slug).per_query
        rows = rows[rows["budget"] == budget]
        found = pd.DataFrame({"full": full, "pruned": rows.groupby("query")[HEADLINE].mean()})
        found["difference"] = found["pruned"] - found["full"]
        found["gold"] = [
            [p for p, grade in judged[data_set].qrels[query].items() if grade > 0] for query in found.index
        ]
        found["best"] = rows[rows["trial"] == 0].set_index("query")[f"top_{TOP}"].map(list)
        frames.append(found.rename_axis("query").reset_index().assign(data_set=data_set))
    if not frames:
        return pd.DataFrame(columns=COLUMNS)
    every = pd.concat(frames, ignore_index=True)[COLUMNS]
    return every[every["difference"] < 0].sort_values(["difference", "data_set", "query"], kind="stable")
