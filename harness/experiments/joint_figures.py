"""Figures of several backbones: retention against the budget in a grid of panels, and R(l) of every backbone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from harness.calibration.window import GAMMA
from harness.drawing import labels, latex
from harness.drawing.figures import Look, interval_band, layer_bands, line, looks, panels
from harness.experiments.gaps import over_benchmarks
from harness.experiments.joint import Joint, Row, benchmarks_of, listed, uneven, where
from harness.experiments.outcome import Outcome
from harness.experiments.windows import NINE, nine_windows
from pruners import Window

TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.9)


def budget_curve(joint: Joint) -> Outcome:
    """A panel for every backbone (across) and benchmark (down)."""
    rows = joint.rows("budget-curve")
    backbones, benchmarks = joint.having("budget-curve"), benchmarks_of(rows)
    methods = sorted(dict.fromkeys(row["method"] for row in rows), key=lambda method: method != "sap")  # it is first
    kept = [row["realised"] for row in rows]

    def draw(figure: Figure) -> None:
        look = looks(methods)
        figure.set_size_inches(max(5.6, 3.3 * len(backbones)), 0.7 + 2.7 * len(benchmarks))
        grid = figure.subplots(len(benchmarks), len(backbones), squeeze=False, sharex=True, sharey=True)
        for across, title in enumerate(backbones):
            for down, benchmark in enumerate(benchmarks):
                axes = grid[down][across]
                here = [row for row in rows if (row["backbone"], row["benchmark"]) == (title, benchmark)]
                axes.set_title(f"{title}, {labels.benchmark(benchmark)}")
                if not here:
                    axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", color="0.4")
                _curves(axes, here, methods, look)
        grid[0][0].set_xlim(min(kept) / 1.2, max(kept) * 1.2)
        ticks = [tick for tick in TICKS if min(kept) * 0.9 <= tick <= max(kept) * 1.1]
        grid[0][0].set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        grid[0][0].minorticks_off()
        for axes in grid[-1]:
            axes.set_xlabel("realised keep ratio [fraction of vectors]")
        for axes in grid[:, 0]:
            axes.set_ylabel("NDCG@5 retention\n[% of the full model]")
        legend_of_all(figure, 6)

    caption = (
        rf"\textbf{{Retention against the budget.}} {latex.escape(where(backbones, benchmarks))}: NDCG@5 retention "
        r"(\%) against the keep ratio $\gamma$ that was realised (log scale); bands are 95\,\% intervals over queries."
    )
    columns = {"backbone": "backbone", "benchmark": "benchmark", "method": "method", "budget": "γ"}
    text = latex.figure("budget-curve.png", caption=caption, label="budget-curve", wide=True)
    return Outcome(rows, {**columns, "realised": "kept", "retention": "%"}, draw, notes=uneven(rows), latex=text)


def _curves(axes: Axes, rows: Sequence[Row], methods: Sequence[str], look: dict[str, Look]) -> None:
    for method in methods:
        own = [row for row in rows if row["method"] == method]
        if not own:
            continue
        x, y = [row["realised"] for row in own], [row["retention"] for row in own]
        interval_band(axes, x, [row["retention_interval"] for row in own], look[method])
        line(axes, x, y, look[method], labels.method(method), markersize=4)
    axes.axhline(100, color="0.4", linewidth=0.8)
    axes.set_xscale("log")


def layer_curve(joint: Joint) -> Outcome:
    """R(l) of every backbone with its window, its alignment region and its median."""
    rows = joint.rows("layer-curve")
    backbones = joint.having("layer-curve")
    seen = {title: [row for row in rows if row["backbone"] == title] for title in backbones}
    facts = {title: _layer_facts(joint, title) for title in backbones}

    def draw(figure: Figure) -> None:
        places = panels(figure, backbones if len(backbones) > 1 else [""], share_y=False)
        for axes, title in zip(places, backbones, strict=True):
            _layer_panel(axes, seen[title], facts[title])
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.set_xlabel(f"decoder layer l of {title} [index from 0]")
        places[0].set_ylabel(f"Score Retention R(l) at γ = {GAMMA:g}\n[MaxSim pruned / full]")
        legend_of_all(figure, 5)

    pairs = listed(map(str, sorted({fact["pairs"] for fact in facts.values()})))
    windows = ", ".join(f"{title} {fact['window']}" for title, fact in facts.items())
    caption = (
        rf"\textbf{{Score Retention of every layer alone.}} {latex.escape(where(backbones))}: $R(l)$ at "
        rf"$\gamma={GAMMA:.2f}$ on {pairs} calibration pairs, with 95\,\% intervals. Shaded: the SR-guided window "
        rf"(layers: {latex.escape(windows)}); hatched: the alignment region; dashed: the median; dotted: the centre of "
        r"the best of nine windows by NDCG@5."
    )
    notes = joint.unlike()
    notes += [
        f"{title}: no window ablation, so no best of nine windows" for title in backbones if not _best(facts[title])
    ]
    notes += [f"{title} has no alignment region" for title in backbones if facts[title]["alignment"] is None]
    columns = {"backbone": "backbone", "layer": "layer", "score_retention": "R(l)", "region": "region"}
    text = latex.figure("layer-curve.png", caption=caption, label="layer-curve", wide=True)
    return Outcome(rows, columns, draw, {"backbones": facts}, notes, text)


def legend_of_all(figure: Figure, columns: int) -> None:
    """One legend of what any panel shows: not every backbone has every series."""
    parts = [zip(*axes.get_legend_handles_labels(), strict=True) for axes in figure.axes]
    handles = {label: handle for part in parts for handle, label in part}
    count = min(columns, len(handles))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=count, frameon=False)


def _layer_facts(joint: Joint, title: str) -> dict[str, Any]:
    facts, depth = joint.record(title, "layer-curve")["facts"], joint.card(title)["layers"]
    kept = {key: facts[key] for key in ("pairs", "median", "l_star", "window", "snap")}
    kept["alignment"] = joint.alignment(title)
    if title in joint.having("window-ablation"):
        ablation = joint.ablation(title, GAMMA)
        mean = over_benchmarks({b: {w: r["retention"] for w, r in own.items()} for b, own in ablation.items()})
        best = max(NINE, key=lambda name: mean[name])
        layers = nine_windows(depth)[best]
        kept |= {"best_of_nine": best, "best_of_nine_layers": str(layers), "over": list(ablation)}
    return kept


def _best(facts: dict[str, Any]) -> Window | None:
    return Window.parse(facts["best_of_nine_layers"]) if "best_of_nine" in facts else None


def _layer_panel(axes: Axes, rows: Sequence[Row], facts: dict[str, Any]) -> None:
    window, best = Window.parse(facts["window"]), _best(facts)
    depth = len(rows)
    layer_bands(axes, (window.start, window.stop or depth), facts["l_star"], depth)
    y, error = [row["score_retention"] for row in rows], [1.96 * row["standard_error"] for row in rows]
    axes.errorbar(range(depth), y, yerr=error, color="black", marker="o", markersize=4, capsize=2, label="R(l)")
    axes.axhline(facts["median"], color="0.3", linestyle="--", linewidth=1, label="median")
    if best:
        centre = (best.start + (best.stop or depth) - 1) / 2
        axes.axvline(centre, color="black", linestyle=":", label="centre of the best of nine windows")
