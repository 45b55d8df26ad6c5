"""Score Retention against NDCG retention over all backbones: one cloud of points, and how closely they go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from harness import paper
from harness.experiments import latex, printed
from harness.experiments.correlation import RESAMPLES
from harness.experiments.figures import legend, looks, panels
from harness.experiments.joint import Joint, Row, benchmarks_of, uneven, where
from harness.experiments.outcome import Outcome

PAPER_METHODS = ("docpruner", "random", "kmeans(renormalize=false)", "sap")


def _pearson(points: np.ndarray) -> float:
    return float(np.corrcoef(points.T)[0, 1])


def _spearman(points: np.ndarray) -> float:
    return _pearson(stats.rankdata(points, axis=0))


MEASURES = {"pearson": _pearson, "spearman": _spearman}


def sr_ndcg(joint: Joint) -> Outcome:
    """Every backbone, data set, method and budget is a point."""
    rows = [row for row in joint.rows("sr-ndcg") if _finite(row)]
    backbones = joint.having("sr-ndcg")
    facts: dict[str, Any] = {"points": len(rows), **correlations(rows)}
    facts["by_backbone"] = {title: correlations([r for r in rows if r["backbone"] == title]) for title in backbones}
    notes = uneven(rows)
    points = _printed_points(joint, rows)
    if points:
        r, said = _measure("pearson", points), paper.printed()["sr_ndcg_pearson"]
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


def correlations(rows: Sequence[Row]) -> dict[str, Any]:
    """Both coefficients with 95 % intervals of a bootstrap that draws data sets within each backbone.

    Points of one data set are not independent, so it is drawn whole. Where a backbone has one, its points are drawn.
    """
    strata: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        strata.setdefault(row["backbone"], {}).setdefault(row["data_set"], []).append(row)
    sets = [list(own.values()) if len(own) > 1 else [[r] for r in next(iter(own.values()))] for own in strata.values()]
    arrays = [[_points(part) for part in own] for own in sets]
    rng = np.random.default_rng(42)
    drawn: dict[str, list[float]] = {name: [] for name in MEASURES}
    for _ in range(RESAMPLES):
        sample = np.concatenate([own[i] for own in arrays for i in rng.integers(len(own), size=len(own))])
        if np.ptp(sample, axis=0).min() > 0:
            for name, measure in MEASURES.items():
                drawn[name].append(measure(sample))
    found: dict[str, Any] = {}
    for name, values in drawn.items():
        found[name] = _measure(name, rows)
        found[f"{name}_interval"] = [float(q) for q in np.quantile(values, [0.025, 0.975])] if values else None
    return found


def _printed_points(joint: Joint, rows: Sequence[Row]) -> list[Row]:
    """Our points that the paper's pooled r is over, if all of them are there: three backbones, 14 data sets."""
    cards = {title: joint.card(title)["name"] for title in joint.backbones}
    methods = {row["method"] for row in rows}
    cluster = "agglomerative" if PAPER_METHODS[2] not in methods else PAPER_METHODS[2]  # the paper calls both "Cluster"
    wanted = {
        (name, data_set, cluster if method == PAPER_METHODS[2] else method, budget)
        for name in paper.MODELS
        for data_set in printed.DATA_SETS
        for method in PAPER_METHODS
        for budget in (0.05, 0.10, 0.20)
    }
    found = {(cards[r["backbone"]], r["data_set"], r["method"], r["budget"]): r for r in rows}
    return [found[place] for place in sorted(wanted)] if wanted <= set(found) else []


def _measure(name: str, rows: Sequence[Row]) -> float:
    return MEASURES[name](_points(rows))


def _points(rows: Sequence[Row]) -> np.ndarray:
    return np.array([[row["score_retention"], row["retention"]] for row in rows])


def _finite(row: Row) -> bool:
    """NaN in a table becomes null in its JSON file for some writers."""
    values = (row["score_retention"], row["retention"])
    return all(value is not None and np.isfinite(value) for value in values)


def _interval(facts: Mapping[str, Any], name: str) -> str:
    interval = facts[f"{name}_interval"]
    text = f"{facts[name]:.2f}" + (f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")
    return text.replace("-", "−")
