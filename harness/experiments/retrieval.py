"""Tables of retrieval quality: the main table, the budget curve, cutoffs, SAP-Adaptive."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from harness import paper
from harness.drawing import labels
from harness.drawing.figures import bars, interval_band, legend, line, looks, panels
from harness.experiments import printed
from harness.experiments.cells import Cells
from harness.experiments.outcome import Outcome
from harness.experiments.workbench import PAPER_METHODS, Workbench
from harness.metrics.ranking import CUTOFFS
from pruners import STANDARD, SWEEP

RETENTION = "NDCG@5 retention\n[% of the full model]"
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.9)
GAMMA = "keep ratio γ [fraction of a page's vectors]"


def standard(workbench: Workbench) -> Cells:
    """The paper's methods at the three standard budgets: read by five experiments, run once."""
    return workbench.evaluate(PAPER_METHODS, STANDARD)


def main_table(workbench: Workbench) -> Outcome:
    """Every data set, method and standard budget, then the benchmarks' averages with intervals."""
    cells, name = standard(workbench), workbench.backbone.card.name
    rows: list[dict[str, Any]] = []
    for row in cells.data_sets:
        known = printed.cell(name, row["data_set"], row["method"], row["budget"])
        own = {"retention": row["retention@5"], "retention_interval": None}
        rows.append(_row(row, row["data_set"], own, known))
    for row in cells.averages:
        own = {"retention": row["retention"], "retention_interval": row["retention_interval"]}
        rows.append(_row(row, "average", own, printed.average(name, row)))
    columns = {
        "benchmark": "benchmark",
        "data_set": "data set",
        "method": "method",
        "budget": "γ",
        "score_retention": "SR",
        "ndcg@5": "NDCG@5",
        "retention": "%",
    }
    groups = list(workbench.groups)

    def draw(figure: Figure) -> None:
        places = panels(figure, [labels.benchmark(group) for group in groups])
        look = looks(map(labels.method, cells.methods()))
        for axes, group in zip(places, groups, strict=True):
            series = {
                labels.method(m): [cells.average(group, m, b)["retention"] for b in STANDARD] for m in cells.methods()
            }
            bars(axes, [f"{budget:g}" for budget in STANDARD], series, look)
            axes.set_xlabel(GAMMA)
        places[0].set_ylabel(RETENTION)
        legend(figure, places[0], 3)

    return Outcome(rows, columns, draw, notes=failures(cells))


def _row(row: dict[str, Any], data_set: str, own: dict[str, Any], known: dict[str, Any] | None) -> dict[str, Any]:
    shared = ("method", "budget", "realised", "full_ndcg@5", "score_retention", "ndcg@5")
    line = {"benchmark": row["benchmark"], "data_set": data_set, **{name: row[name] for name in shared}, **own}
    if known is None:
        return line
    also = {"full_ndcg@5": "full_ndcg_at_5", "score_retention": "score_retention", "ndcg@5": "ndcg_at_5"}
    said = {f"paper_{ours}": known[theirs] for ours, theirs in also.items()}
    return {**line, **printed.beside(own["retention"], known["ndcg_at_5_retention_pct"]), **said}


def budget_curve(workbench: Workbench) -> Outcome:
    """Retention at all budgets of the sweep. K-Means is the main table's, so that the paper's stands beside it."""
    cells = workbench.evaluate(("sap", "random", "kmeans(renormalize=false)", "docpruner", "eos"), SWEEP)
    name = workbench.backbone.card.name
    rows = []
    for row in cells.averages:
        known = (printed.average(name, row) or {}).get("ndcg_at_5_retention_pct")
        kept = ("benchmark", "method", "budget", "realised", "score_retention", "ndcg@5")
        own = {"retention": row["retention"], "retention_interval": row["retention_interval"]}
        rows.append({**{n: row[n] for n in kept}, **own, **printed.beside(row["retention"], known)})
    groups = list(workbench.groups)

    def draw(figure: Figure) -> None:
        places = panels(figure, [labels.benchmark(group) for group in groups])
        look = looks(cells.methods())
        for axes, group in zip(places, groups, strict=True):
            for method in cells.methods():
                here = [row for row in rows if (row["benchmark"], row["method"]) == (group, method)]
                x, y = [row["realised"] for row in here], [row["retention"] for row in here]
                interval_band(axes, x, [row["retention_interval"] for row in here], look[method])
                line(axes, x, y, look[method], labels.method(method))
            axes.axhline(100, color="0.4", linewidth=0.8)
            axes.set_xscale("log")
            axes.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
            axes.minorticks_off()
            axes.set_xlabel("realised keep ratio [fraction of vectors, log scale]")
        places[0].set_ylabel(RETENTION)
        legend(figure, places[0], 5)

    columns = {"benchmark": "benchmark", "method": "method", "budget": "γ", "realised": "kept", "retention": "%"}
    return Outcome(rows, columns, draw, notes=failures(cells))


def ndcg_cutoffs(workbench: Workbench) -> Outcome:
    """SAP's retention at every cutoff."""
    cells, name = standard(workbench), workbench.backbone.card.name
    rows = []
    for row in [row for row in cells.averages if row["method"] == "sap"]:
        known = [r for r in printed.in_benchmark("ndcg_cutoffs", name, row) if r["gamma"] == row["budget"]]
        for k in CUTOFFS:
            says = known[0][f"ndcg_at_{k}_retention_pct"] if known else None
            ours = row[f"retention@{k}"]
            cell = {"benchmark": row["benchmark"], "budget": row["budget"], "cutoff": k, "retention": ours}
            said = {"paper_score_retention": known[0]["score_retention"]} if known else {}
            rows.append({**cell, "score_retention": row["score_retention"], **printed.beside(ours, says), **said})
    groups = list(workbench.groups)

    def draw(figure: Figure) -> None:
        places = panels(figure, [labels.benchmark(group) for group in groups])
        look = looks(f"γ = {b:g}" for b in STANDARD)
        for axes, group in zip(places, groups, strict=True):
            for budget in STANDARD:
                here = [row for row in rows if (row["benchmark"], row["budget"]) == (group, budget)]
                label = f"γ = {budget:g}"
                line(axes, range(len(here)), [row["retention"] for row in here], look[label], label)
            axes.set_xticks(range(len(CUTOFFS)), [f"@{k}" for k in CUTOFFS])
            axes.set_xlabel("NDCG cutoff [rank]")
        places[0].set_ylabel("NDCG retention of SAP\n[% of the full model]")
        legend(figure, places[0])

    columns = {"benchmark": "benchmark", "budget": "γ", "cutoff": "NDCG@", "retention": "%"}
    return Outcome(rows, columns, draw, notes=failures(cells))


def sap_adaptive(workbench: Workbench) -> Outcome:
    """One threshold over all pages against the same ratio on every page: the index has the same size."""
    cells, name = standard(workbench), workbench.backbone.card.name
    rows = []
    for fixed in [row for row in cells.averages if row["method"] == "sap"]:
        group, budget = fixed["benchmark"], fixed["budget"]
        ours = cells.average(group, "sap_adaptive", budget)
        row = {
            "benchmark": group,
            "budget": budget,
            "adaptive": ours["retention"],
            "adaptive_interval": ours["retention_interval"],
            "fixed": fixed["retention"],
            "fixed_interval": fixed["retention_interval"],
            "adaptive_minus_fixed": ours["retention"] - fixed["retention"],
            "adaptive_realised": ours["realised"],
            "fixed_realised": fixed["realised"],
            "drift": ours["drift"],
        }
        whole = group == "vidore-v2" and fixed["data_sets"] == printed.SIZES[group]
        for table in paper.of_model("sap_adaptive_vs_fixed_v2", name) if whole else []:
            adaptive, plain = table[f"g{round(100 * budget):03d}"]
            row |= {"paper_adaptive": adaptive, "difference": ours["retention"] - adaptive}
            row |= {"paper_fixed": plain, "difference_fixed": fixed["retention"] - plain}
        rows.append(row)
    groups = list(workbench.groups)

    def draw(figure: Figure) -> None:
        places = panels(figure, [labels.benchmark(group) for group in groups])
        look = looks(("SAP, one ratio a page", "SAP-Adaptive"))
        for axes, group in zip(places, groups, strict=True):
            here = [row for row in rows if row["benchmark"] == group]
            series = {
                "SAP, one ratio a page": [row["fixed"] for row in here],
                "SAP-Adaptive": [row["adaptive"] for row in here],
            }
            bars(axes, [f"{row['budget']:g}" for row in here], series, look)
            axes.set_xlabel(GAMMA)
        places[0].set_ylabel(RETENTION)
        legend(figure, places[0])

    columns = {
        "benchmark": "benchmark",
        "budget": "γ",
        "adaptive": "adaptive %",
        "fixed": "fixed %",
        "adaptive_minus_fixed": "difference",
        "adaptive_realised": "adaptive kept",
    }
    return Outcome(rows, columns, draw, notes=failures(cells))


def failures(cells: Cells) -> list[str]:
    return [f"left out: {method}: {reason}" for method, reason in cells.failures.items()]
