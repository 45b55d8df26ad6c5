"""Do Score Retention and NDCG retention go together? Every data set, method and budget is a point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from harness.drawing import labels
from harness.drawing.figures import legend, looks, panels
from harness.experiments.outcome import Outcome
from harness.experiments.retrieval import standard
from harness.experiments.workbench import Workbench

RESAMPLES = 1_000
PAPER_POINTS = ("sap", "random", "docpruner", "kmeans(renormalize=false)")
"""The four methods whose points the paper correlates: r of its printed cells of these is the 0.60 that it states."""


def sr_ndcg(workbench: Workbench) -> Outcome:
    """Pearson and Spearman with intervals from resampled data sets: points of one data set are not independent.

    The paper's r is over the points of all its backbones, so one backbone's is not compared with it.
    """
    cells = standard(workbench)
    names = ("benchmark", "data_set", "method", "budget", "score_retention")
    rows = [
        {**{n: row[n] for n in names}, "retention": row["retention@5"], "in_paper": row["method"] in PAPER_POINTS}
        for row in cells.data_sets
    ]
    usable = [row for row in rows if np.isfinite(row["retention"]) and np.isfinite(row["score_retention"])]
    points, data_sets = points_of(usable), {row["data_set"] for row in usable}
    facts: dict[str, Any] = {"points": len(points), "data_sets": len(data_sets), **correlations(usable)}
    of_paper = [row for row in usable if row["in_paper"]]
    theirs = correlations(of_paper)
    facts |= {"points_of_the_papers_methods": len(of_paper)}
    facts |= {f"{name}_of_the_papers_methods": theirs[name] for name in ("pearson", "spearman")}

    def draw(figure: Figure) -> None:
        (axes,) = panels(figure, [""], height=4.4)
        look = looks(cells.methods())
        for method in cells.methods():
            here = np.array([p for p, row in zip(points, usable, strict=True) if row["method"] == method])
            kind, ours = look[method], method.startswith("sap")
            face = kind.color if ours else "none"
            style: dict[str, Any] = {"s": 26, "marker": kind.marker, "facecolors": face, "edgecolors": kind.color}
            axes.scatter(here[:, 0], here[:, 1], label=labels.method(method), **style)
        pearson, spearman = (
            f"{facts[n]:.2f} [{facts[f'{n}_interval'][0]:.2f}, {facts[f'{n}_interval'][1]:.2f}]"
            for n in ("pearson", "spearman")
        )
        axes.set_title(f"Pearson {pearson}, Spearman {spearman}", fontsize=9)
        axes.set_xlabel("Score Retention [MaxSim pruned / full]")
        axes.set_ylabel("NDCG@5 retention [% of the full model]")
        legend(figure, axes, 3)

    columns = {"data_set": "data set", "method": "method", "budget": "γ", "score_retention": "SR", "retention": "%"}
    return Outcome(rows, columns, draw, facts)


def correlations(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Both coefficients with 95 % intervals of a bootstrap that draws data sets within each backbone.

    Points of one data set are not independent, so it is drawn whole. Where a backbone has one, its points are drawn.
    """
    strata: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for row in rows:
        strata.setdefault(row.get("backbone", ""), {}).setdefault(row["data_set"], []).append(row)
    sets = [list(own.values()) if len(own) > 1 else [[r] for r in next(iter(own.values()))] for own in strata.values()]
    arrays = [[points_of(part) for part in own] for own in sets]
    rng = np.random.default_rng(42)
    drawn: dict[str, list[float]] = {name: [] for name in MEASURES}
    for _ in range(RESAMPLES):
        sample = np.concatenate([own[i] for own in arrays for i in rng.integers(len(own), size=len(own))])
        if np.ptp(sample, axis=0).min() > 0:
            for name, measure in MEASURES.items():
                drawn[name].append(measure(sample))
    found: dict[str, Any] = {}
    for name, values in drawn.items():
        found[name] = MEASURES[name](points_of(rows))
        found[f"{name}_interval"] = [float(q) for q in np.quantile(values, [0.025, 0.975])] if values else None
    return found


def points_of(rows: Sequence[Mapping[str, Any]]) -> np.ndarray:
    return np.array([[row["score_retention"], row["retention"]] for row in rows])


def pearson(points: np.ndarray) -> float:
    return float(np.corrcoef(points.T)[0, 1])


def _spearman(points: np.ndarray) -> float:
    return pearson(stats.rankdata(points, axis=0))


MEASURES = {"pearson": pearson, "spearman": _spearman}
