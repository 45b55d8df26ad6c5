"""SAP beside a trained method, Light-ColPali, which is quoted and not run."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from harness import paper
from harness.drawing import labels
from harness.drawing.figures import legend, line, looks, panels
from harness.experiments import printed
from harness.experiments.outcome import Outcome
from harness.experiments.retrieval import RETENTION, failures
from harness.experiments.workbench import Workbench

EXACT = {4: 1 / 4, 9: 1 / 9, 25: 1 / 25}
"""Compression factors of Light-ColPali, and the budgets that they are."""

NEAREST = {4: 0.25, 9: 0.10, 25: 0.05}
"""The budgets that the SAP paper took for them: its cells can only be compared with ours at these."""


def trained_comparison(workbench: Workbench) -> Outcome:
    """SAP and training-free merging at the trained method's exact ratios, and at those the SAP paper took for them."""
    budgets = {*EXACT.values(), *NEAREST.values()}
    cells, name = workbench.evaluate(("sap", "token_pooling"), sorted(budgets)), workbench.backbone.card.name
    rows: list[dict[str, Any]] = []
    for factor in EXACT:
        for budget in dict.fromkeys((EXACT[factor], NEAREST[factor])):
            for row in [row for row in cells.averages if row["budget"] == budget]:
                own = {"retention": row["retention"], "retention_interval": row["retention_interval"]}
                cell = {"benchmark": row["benchmark"], "method": row["method"], "source": "measured", "trained": False}
                at = {"factor": factor, "budget": budget, "exact": budget == EXACT[factor], "realised": row["realised"]}
                rows.append({**cell, **at, "ndcg@5": row["ndcg@5"], **own, **beside_trained(name, row, factor)})
        for table in paper.of_model("light_colpali_reported", name):
            cell = {"benchmark": "its own", "method": "Light-ColPali", "source": "reported", "trained": True}
            at = {"factor": factor, "budget": EXACT[factor], "exact": True}
            rows.append({**cell, **at, "retention": table[f"factor_{factor}x"]})
    notes = [
        "Light-ColPali's figures are quoted: other data sets, another upper bound, merging that was trained."
        if any(row["trained"] for row in rows)
        else f"Light-ColPali reports nothing for {labels.backbone(name)}."
    ]
    if any("paper" in row for row in rows):
        notes.append(
            "The SAP paper took the nearest budgets it had: 0.25, 0.10 and 0.05. Its cells stand beside those."
        )
    drawn = [row for row in rows if row["exact"]]
    names = list(dict.fromkeys(_label(row) for row in drawn))

    def draw(figure: Figure) -> None:
        (axes,) = panels(figure, [""])
        look = looks(names)
        for label in names:
            here = [row for row in drawn if _label(row) == label]
            line(axes, [row["factor"] for row in here], [row["retention"] for row in here], look[label], label)
        axes.set_xscale("log")
        axes.set_xticks(list(EXACT), [f"{factor}x" for factor in EXACT])
        axes.minorticks_off()
        axes.set_xlabel("compression [full vectors / kept vectors, log scale]")
        axes.set_ylabel(RETENTION)
        legend(figure, axes, 2)

    columns = {"method": "method", "benchmark": "benchmark", "factor": "factor", "budget": "γ", "retention": "%"}
    return Outcome(rows, {**columns, "source": "source"}, draw, notes=[*notes, *failures(cells)])


def beside_trained(backbone: str, row: dict[str, Any], factor: int) -> dict[str, float]:
    """The SAP paper's own cell, at the same budget on the same benchmark."""
    tables = printed.in_benchmark("trained_comparison_sap", backbone, row) if row["method"] == "sap" else []
    for table in tables:
        if (table["factor"], table["gamma"]) == (factor, row["budget"]):
            beside = printed.beside(row["retention"], table["ndcg_at_5_retention_pct"])
            return {**beside, "paper_ndcg@5": table["ndcg_at_5"]}
    return {}


def _label(row: dict[str, Any]) -> str:
    where = "as reported" if row["trained"] else labels.benchmark(row["benchmark"])
    return f"{labels.method(row['method'])}, {where}"
