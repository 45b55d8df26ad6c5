"""Score Retention against NDCG retention over all backbones: one cloud of points, and how closely they go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from harness import paper
from harness.drawing import latex
from harness.drawing.figures import legend, looks, panels
from harness.experiments import printed
from harness.experiments.correlation import PAPER_POINTS, correlations, pearson, points_of
from harness.experiments.joint import Joint, Row, benchmarks_of, uneven, where
from harness.experiments.outcome import Outcome

CLUSTER = "kmeans(renormalize=false)"


def sr_ndcg(joint: Joint) -> Outcome:
    """Every backbone, data set, method and budget is a point."""
    rows = [row for row in joint.rows("sr-ndcg") if _finite(row)]
    backbones = joint.having("sr-ndcg")
    facts: dict[str, Any] = {"points": len(rows), **correlations(rows)}
    facts["by_backbone"] = {title: correlations([r for r in rows if r["backbone"] == title]) for title in backbones}
    notes = uneven(rows)
    points = _printed_points(joint, rows)
    if points:
        r, said = pearson(points_of(points)), paper.printed()["sr_ndcg_pearson"]
        facts["the_papers_points"] = {"points": len(points), "pearson": r, **printed.beside(r, said)}
    else:
        notes.append("No comparison with the paper's r: it is over its three backbones on all of ViDoRe v1 and v2.")

    def draw(figure: Figure) -> None:
        (axes,) = panels(figure, [""], height=4.6)
        look = looks(backbones)
        for title in backbones:
            for ours in (True, False):
                here = [r for r in rows if r["backbone"] == title and r["method"].startswith("sap") == ours]
                x, y = [r["score_retention"] for r in here], [r["retention"] for r in here]
                face, kind = (look[title].color if ours else "none"), look[title]
                label = f"{title}, {'SAP' if ours else 'baselines'}"
                style: dict[str, Any] = {"facecolors": face, "edgecolors": kind.color, "zorder": 3 if ours else 2}
                axes.scatter(x, y, s=22, marker=kind.marker, linewidths=0.9, label=label, **style)
        axes.set_title(
            f"all points: Pearson {_interval(facts, 'pearson')}, Spearman {_interval(facts, 'spearman')}", fontsize=9
        )
        axes.set_xlabel("Score Retention [MaxSim pruned / full]")
        axes.set_ylabel("NDCG@5 retention [% of the full model]")
        legend(figure, axes, min(3, len(backbones)))

    caption = (
        rf"\textbf{{Score Retention and NDCG@5 retention.}} {latex.escape(where(backbones, benchmarks_of(rows)))}: "
        rf"each of {len(rows)} points is one backbone, data set, method and keep ratio; SAP filled, baselines hollow. "
        rf"Pearson $r={facts['pearson']:.2f}$, Spearman $\rho={facts['spearman']:.2f}$; "
        r"intervals resample data sets within backbones."
    )
    columns = {"backbone": "backbone", "data_set": "data set", "method": "method", "budget": "γ"}
    columns |= {"score_retention": "SR", "retention": "%"}
    return Outcome(rows, columns, draw, facts, notes, latex.figure("sr-ndcg.png", caption=caption, label="sr-ndcg"))


def _printed_points(joint: Joint, rows: Sequence[Row]) -> list[Row]:
    """Our points that the paper's pooled r is over, if all of them are there: three backbones, 14 data sets."""
    cards = {title: joint.card(title)["name"] for title in joint.backbones}
    methods = {row["method"] for row in rows}
    cluster = CLUSTER if CLUSTER in methods else "agglomerative"  # the paper calls both "Cluster"
    wanted = {
        (name, data_set, cluster if method == CLUSTER else method, budget)
        for name in paper.MODELS
        for data_set in printed.DATA_SETS
        for method in PAPER_POINTS
        for budget in (0.05, 0.10, 0.20)
    }
    found = {(cards[r["backbone"]], r["data_set"], r["method"], r["budget"]): r for r in rows}
    return [found[place] for place in sorted(wanted)] if wanted <= set(found) else []


def _finite(row: Row) -> bool:
    """NaN in a table becomes null in its JSON file for some writers."""
    values = (row["score_retention"], row["retention"])
    return all(value is not None and np.isfinite(value) for value in values)


def _interval(facts: Mapping[str, Any], name: str) -> str:
    interval = facts[f"{name}_interval"]
    text = f"{facts[name]:.2f}" + (f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")
    return text.replace("-", "−")
