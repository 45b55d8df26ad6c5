"""Experiments on the window: R(l), nine sliding windows, and windows of every width. Gaps are in `gaps.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from harness import paper
from harness.calibration.window import GAMMA, choose_window, mean_retention, pair_retention, width, window_before
from harness.drawing import labels
from harness.drawing.figures import layer_bands, legend, line, looks, panels
from harness.experiments import printed
from harness.experiments.cells import Cells
from harness.experiments.gaps import NINE, gaps, nine_windows, printed_gaps, snap
from harness.experiments.outcome import Outcome
from harness.experiments.retrieval import RETENTION
from harness.experiments.workbench import Workbench
from pruners import STANDARD, Window
from pruners.sap import sap

WINDOW_NAMES = {
    "sr-guided": "SR-guided",
    "saved": "SR-guided",
    "reported": "SR-guided, as the paper reports it",
    "given": "given",
}
"""What the window that SAP uses here is called, by where it comes from: one given by hand was not selected."""


def sweep_windows(workbench: Workbench) -> Cells:
    """The nine windows and the one SAP uses here at three budgets: one evaluation, each page scored once."""
    windows = [*nine_windows(workbench.backbone.card.layers).values(), workbench.bound.window]
    return workbench.evaluate([_sap(window) for window in dict.fromkeys(windows)], STANDARD)


def layer_curve(workbench: Workbench) -> Outcome:
    """R(l), its median, the window and the alignment region; and where the best of nine windows lies."""
    chosen = workbench.pairs()
    with workbench.progress("curve over layers", total=len(chosen), done=0) as advance:
        ratios = pair_retention(workbench.calibration_store, chosen, gammas=(GAMMA,), advance=advance)[:, :, 0]
    curve, left_out = mean_retention(ratios)
    usable = ratios[~np.isnan(ratios).any(1)]
    error = usable.std(0, ddof=1) / np.sqrt(len(usable)) if len(usable) > 1 else np.zeros(len(curve))
    choice = choose_window(curve, pairs=len(chosen), left_out=left_out)
    layers = len(curve)
    stop = choice.window.stop or layers
    snapped = snap(choice.window, layers)
    cells = sweep_windows(workbench)
    best = _best_window(workbench, cells)
    rows = [
        {
            "layer": layer,
            "score_retention": value,
            "standard_error": error[layer],
            "below_median": value < choice.median,
            "region": _region(layer, choice.window.start, stop, choice.boundary),
        }
        for layer, value in enumerate(choice.curve)
    ]
    facts: dict[str, Any] = {
        "pairs": len(chosen),
        "pairs_left_out": left_out,
        "gamma": GAMMA,
        "median": choice.median,
        "l_star": choice.boundary,
        "window": str(choice.window),
        "snap": snapped,
        **gaps(_retention_of_nine(workbench, cells, GAMMA), snapped),
        "empty_suffix": choice.empty_suffix,
        "window_that_sap_uses_here": {
            "window": str(workbench.bound.window),
            "source": workbench.bound.origin["source"],
        },
        "best_of_nine_windows": best,
    }
    for row in paper.of_model("sr_guided_windows", workbench.backbone.card.name):
        facts["paper"] = {"l_star": row["l_star"], "window": "{}-{}".format(*row["window"]), "snap": row["snap"]}
        facts["same_window_as_paper"] = str(choice.window) == facts["paper"]["window"]
        facts |= printed_gaps(workbench.backbone.card.name, _sizes(workbench), facts)

    def draw(figure: Figure) -> None:
        (axes,) = panels(figure, [""])
        layer_bands(axes, (choice.window.start, stop), choice.boundary, layers)
        look = looks(("R(l)",))["R(l)"]
        axes.errorbar(
            range(layers), choice.curve, yerr=1.96 * error, color="black", marker=look.marker, capsize=2, label="R(l)"
        )
        axes.axhline(choice.median, color="0.3", linestyle="--", linewidth=1, label="median")
        centre = (best["start"] + best["stop"] - 1) / 2
        axes.axvline(centre, color="black", linestyle=":", label="centre of the best of nine windows")
        axes.set_xlabel(workbench.backbone.card.rows_are or "decoder layer l [index from 0]")
        axes.set_ylabel(f"Score Retention R(l) at γ = {GAMMA:g}\n[MaxSim pruned / full]")
        legend(figure, axes, 3)

    notes = ["No layer of the end is below the median: no alignment region."] if choice.empty_suffix else []
    return Outcome(rows, {"layer": "layer", "score_retention": "R(l)", "region": "region"}, draw, facts, notes)


def window_ablation(workbench: Workbench) -> Outcome:
    """Nine windows × three budgets, and the window that SAP uses here among them, named by where it comes from."""
    cells, name, layers = sweep_windows(workbench), workbench.backbone.card.name, workbench.backbone.card.layers
    source = workbench.bound.origin["source"]
    own = WINDOW_NAMES[source]
    windows: dict[str, Window] = {**nine_windows(layers), own: workbench.bound.window}
    rows: list[dict[str, Any]] = []
    for group in workbench.groups:
        for budget in STANDARD:
            here = {n: cells.average(group, _sap(window), budget) for n, window in windows.items()}
            best = max(here[n]["retention"] for n in NINE)
            for n, average in here.items():
                tables = [r for r in printed.in_benchmark("window_ablation", name, average) if r["gamma"] == budget]
                says = tables[0]["ndcg_at_5_retention_pct"].get(n) if tables else None
                row = {
                    "benchmark": group,
                    "budget": budget,
                    "window": n,
                    "layers": str(windows[n]),
                    "retention": average["retention"],
                    "retention_interval": average["retention_interval"],
                    "score_retention": average["score_retention"],
                    "best_of_nine": n in NINE and average["retention"] == best,
                    "gap_to_best_of_nine": average["retention"] - best,
                }
                rows.append({**row, **printed.beside(average["retention"], says)})
    rows += _means_over_benchmarks(rows, name)
    groups = list(workbench.groups)

    def draw(figure: Figure) -> None:
        places = panels(figure, [labels.benchmark(group) for group in groups])
        look = looks(f"γ = {b:g}" for b in STANDARD)
        for axes, group in zip(places, groups, strict=True):
            for budget in STANDARD:
                here = [r for r in rows if (r["benchmark"], r["budget"]) == (group, budget)]
                label, nine = f"γ = {budget:g}", [r["retention"] for r in here if r["window"] in NINE]
                line(axes, range(9), nine, look[label], label)
                level = next(r["retention"] for r in here if r["window"] == own)
                axes.axhline(level, color=look[label].color, linestyle=look[label].line, linewidth=0.8, alpha=0.7)
            axes.set_xticks(range(9), NINE, rotation=45)
            axes.set_xlabel(f"window [% of the depth]\nlevel lines: layers {workbench.bound.window}, {own}")
        places[0].set_ylabel(RETENTION)
        legend(figure, places[0])

    columns = {"benchmark": "benchmark", "budget": "γ", "window": "window %", "layers": "layers", "retention": "%"}
    snapped = snap(workbench.bound.window, layers)
    facts: dict[str, Any] = {
        "window": str(workbench.bound.window),
        "window_name": own,
        "source": source,
        "snap": snapped,
    }
    facts |= gaps(_retention_of_nine(workbench, cells, GAMMA), snapped)
    if source != "given":  # the paper's gaps are of a window that was selected
        facts |= printed_gaps(name, _sizes(workbench), facts)
    facts["gaps"] = [
        {"budget": budget, "snap": snapped, **gaps(_retention_of_nine(workbench, cells, budget), snapped)}
        for budget in STANDARD
    ]
    return Outcome(rows, {**columns, "best_of_nine": "best"}, draw, facts)


def width_robustness(workbench: Workbench) -> Outcome:
    """Windows that end where the one SAP uses here ends, of every width; each evaluated, none approximated."""
    layers = workbench.backbone.card.layers
    stop = workbench.bound.window.stop or layers
    widths = {k: window_before(stop, k) for k in range(1, layers + 1)}
    cells = workbench.evaluate([_sap(window) for window in dict.fromkeys(widths.values())], (GAMMA,))
    default = width(layers)
    rows = []
    for group in workbench.groups:
        for k, window in widths.items():
            average = cells.average(group, _sap(window), GAMMA)
            row = {"benchmark": group, "k": k, "layers": str(window), "default": k == default, "clamped": k > stop}
            own = {"retention": average["retention"], "retention_interval": average["retention_interval"]}
            rows.append({**row, **own, "score_retention": average["score_retention"]})
    groups = list(workbench.groups)

    def draw(figure: Figure) -> None:
        (axes,) = panels(figure, [""])
        look = looks(groups)
        for group in groups:
            here = [row for row in rows if row["benchmark"] == group]
            y = [row["retention"] for row in here]
            low, high = zip(*(row["retention_interval"] for row in here), strict=True)
            axes.fill_between(list(widths), low, high, color=look[group].color, alpha=0.15, linewidth=0)
            line(axes, list(widths), y, look[group], labels.benchmark(group))
        axes.axvline(default, color="black", linestyle=":", label=f"default k = {default}")
        axes.set_xlabel("window width k [layers]")
        axes.set_ylabel(f"{RETENTION}\nat γ = {GAMMA:g}")
        legend(figure, axes, 3)

    columns = {"benchmark": "benchmark", "k": "k", "layers": "layers", "retention": "%", "default": "default"}
    facts = {
        "end": stop,
        "default_k": default,
        "window": str(workbench.bound.window),
        "source": workbench.bound.origin["source"],
    }
    return Outcome(rows, columns, draw, facts)


def _means_over_benchmarks(rows: list[dict[str, Any]], backbone: str) -> list[dict[str, Any]]:
    """The paper's rows "Mean": the mean over v1 and v2, which the SR-guided window should be best on."""
    benchmarks = {row["benchmark"] for row in rows}
    tables = [r for r in paper.of_model("window_ablation", backbone) if r["benchmark"] == "mean"]
    found = []
    for budget, window in dict.fromkeys((row["budget"], row["window"]) for row in rows) if len(benchmarks) > 1 else ():
        here = [row for row in rows if (row["budget"], row["window"]) == (budget, window)]
        mean = float(np.mean([row["retention"] for row in here]))
        whole = benchmarks == set(printed.BENCHMARKS) and all("paper" in row for row in here)
        known = [r["ndcg_at_5_retention_pct"] for r in tables if whole and r["gamma"] == budget]
        cell = {"benchmark": "mean", "budget": budget, "window": window, "layers": here[0]["layers"]}
        found.append({**cell, "retention": mean, **printed.beside(mean, known[0].get(window) if known else None)})
    for row in found:
        best = max(r["retention"] for r in found if r["budget"] == row["budget"] and r["window"] in NINE)
        row |= {"best_of_nine": row["window"] in NINE and row["retention"] == best}
        row |= {"gap_to_best_of_nine": row["retention"] - best}
    return found


def _best_window(workbench: Workbench, cells: Cells) -> dict[str, Any]:
    """The window of the nine with the best mean retention over benchmarks at γ = 0.10."""
    windows = nine_windows(workbench.backbone.card.layers)
    by_benchmark = _retention_of_nine(workbench, cells, GAMMA)
    means = {n: float(np.mean([row[n] for row in by_benchmark.values()])) for n in NINE}
    best = max(means, key=lambda n: means[n])
    return {"window": best, "start": windows[best].start, "stop": windows[best].stop, "retention": means[best]}


def _retention_of_nine(workbench: Workbench, cells: Cells, budget: float) -> dict[str, dict[str, float]]:
    """Benchmark -> window -> retention at a budget."""
    windows = nine_windows(workbench.backbone.card.layers)
    return {
        group: {n: cells.average(group, _sap(window), budget)["retention"] for n, window in windows.items()}
        for group in workbench.groups
    }


def _sizes(workbench: Workbench) -> dict[str, int]:
    return {group: len(tasks) for group, tasks in workbench.groups.items()}


def _region(layer: int, start: int, stop: int, boundary: int) -> str:
    if start <= layer < stop:
        return "window"
    return "alignment" if layer >= boundary else ""


def _sap(window: Window) -> str:
    return str(sap(layers=window))
