"""Windows of several backbones: the nine sliding ones, those that were chosen, and R(l) of every layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness import paper
from harness.calibration.window import GAMMA
from harness.drawing import labels, latex
from harness.experiments import printed
from harness.experiments.gaps import NINE, Retentions, gap, gaps, over_benchmarks
from harness.experiments.joint import Joint, Row, benchmarks_of, guided_row, listed, uneven, where
from harness.experiments.joint_sources import MEAN
from harness.experiments.outcome import Outcome

KEPT: tuple[str, ...] = ("retention_interval", "score_retention", "paper", "difference")
"""Of a folder's own row."""


def window_ablation(joint: Joint, budget: float) -> Outcome:
    """Nine windows, and the one SAP used: a row for every backbone, benchmark and window, and their means."""
    rows: list[Row] = []
    for title in joint.having("window-ablation"):
        by_benchmark = joint.ablation(title, budget)
        retentions = {b: {w: row["retention"] for w, row in own.items()} for b, own in by_benchmark.items()}
        if len(retentions) > 1:
            layers = {window: row["layers"] for window, row in next(iter(by_benchmark.values())).items()}
            retentions[MEAN] = over_benchmarks(retentions)
            by_benchmark[MEAN] = {
                window: {"layers": layers[window], **_printed_mean(joint, title, budget, window, value, by_benchmark)}
                for window, value in retentions[MEAN].items()
            }
        for benchmark, own in by_benchmark.items():
            for window, row in own.items():
                value = retentions[benchmark][window]
                behind = gap(retentions[benchmark], window)
                place = {"backbone": title, "benchmark": benchmark, "budget": budget, "window": window}
                marks = {
                    "selected": window == joint.used(title)[1],
                    "best_of_nine": window in NINE and behind == 0,
                    "gap_to_best_of_nine": behind,
                }
                kept = {name: row[name] for name in KEPT if name in row}
                rows.append({**place, "layers": row["layers"], "retention": value, **marks, **kept})
    columns = {"backbone": "backbone", "benchmark": "benchmark", "window": "window %", "layers": "layers"}
    notes = uneven([row for row in rows if row["benchmark"] != MEAN])
    return Outcome(rows, {**columns, "retention": "%"}, None, notes=notes, latex=_ablation_latex(joint, rows, budget))


def _printed_mean(
    joint: Joint, title: str, budget: float, window: str, value: float, by_benchmark: dict[str, dict[str, Row]]
) -> dict[str, float]:
    """The paper's row "Mean", where ours is over the same two benchmarks."""
    if set(by_benchmark) != set(printed.BENCHMARKS) or not all("paper" in w[window] for w in by_benchmark.values()):
        return {}
    tables = paper.of_model("window_ablation", joint.card(title)["name"])
    known = [t["ndcg_at_5_retention_pct"] for t in tables if (t["benchmark"], t["gamma"]) == (MEAN, budget)]
    return printed.beside(value, known[0].get(window) if known else None)


def _ablation_latex(joint: Joint, rows: list[Row], budget: float) -> str:
    """As the paper prints it: at γ = 0.10 with means and daggers, elsewhere without."""
    whole = budget == GAMMA
    body: list[list[str] | str] = []
    backbones = list(dict.fromkeys(row["backbone"] for row in rows))
    for title in backbones:
        body += [r"\cmidrule(lr){1-11}"] if body else []
        own = [row for row in rows if row["backbone"] == title and (whole or row["benchmark"] != MEAN)]
        for i, benchmark in enumerate(dict.fromkeys(row["benchmark"] for row in own)):
            name = r"\textit{Mean}" if benchmark == MEAN else latex.escape(labels.benchmark(benchmark))
            cells = []
            for window in NINE:
                row = next(r for r in own if (r["benchmark"], r["window"]) == (benchmark, window))
                text = latex.number(row["retention"], 1)
                text = latex.bold(text) if row["best_of_nine"] else text
                cells.append(text + (r"$^\dagger$" if whole and row["selected"] else ""))
            body.append([latex.escape(title) if i == 0 else "", name, *cells])
    windows = " & ".join(window.replace("-", "--") for window in NINE)
    dagger = f" $^\\dagger$ marks the window that {_chosen_how(joint, backbones)} snaps to." if whole else ""
    caption = (
        rf"\textbf{{Window ablation at $\gamma={budget:.2f}$.}} NDCG@5 retention (\%) of SAP at nine sliding windows "
        rf"of a fifth of the depth (in \% of it), {latex.escape(where(backbones, _benchmarks(rows)))}.{dagger} "
        r"Best window of a row in \textbf{bold}."
    )
    head = [rf"\textbf{{Model}} & \textbf{{Bench}} & {windows} \\"]
    name = _ablation_name(budget)
    return latex.table(body, head, align="ll" + "c" * 9, caption=caption, label=name, wide=True)


def _ablation_name(budget: float) -> str:
    return "window-ablation" if budget == GAMMA else f"window-ablation-g{round(100 * budget):03d}"


def _chosen_how(joint: Joint, backbones: list[str]) -> str:
    given = [title for title in backbones if not joint.calibrated(title)]
    if not given:
        return "the SR-guided one"
    return f"the one SAP used (not calibrated here for {latex.escape(listed(given))})"


def _benchmarks(rows: list[Row]) -> list[str]:
    return [name for name in benchmarks_of(rows) if name != MEAN]


def windows(joint: Joint) -> Outcome:
    """The window that the SR-guided procedure chooses for each backbone, and its gap to the best of nine."""
    rows: list[Row] = []
    notes = []
    for title in joint.having("layer-curve", "window-ablation"):
        facts, depth = joint.record(title, "layer-curve")["facts"], joint.card(title)["layers"]
        ablation = joint.ablation(title, GAMMA)
        retentions = {b: {w: row["retention"] for w, row in own.items()} for b, own in ablation.items()}
        used, snapped = joint.used(title)
        own = {"layers": depth, "l_star": facts["l_star"], "window": facts["window"], "snap": facts["snap"]}
        found = gaps(retentions, facts["snap"])
        row = {"backbone": title, **own, "alignment": joint.alignment(title), **found}
        if used == facts["window"]:
            exact = gaps(retentions, guided_row(next(iter(retentions.values()))))
            row |= {f"{name}_of_these_layers": value for name, value in exact.items()}
        else:
            notes.append(f"SAP read layers {used} of {title} (they snap to {snapped}), not those chosen here")
        rows.append({**row, "benchmarks": list(retentions), **_printed_window(joint, title, retentions)})
    notes += [f"{row['backbone']} has no alignment region" for row in rows if row["alignment"] is None]
    columns = {"backbone": "backbone", "layers": "L", "l_star": "l*", "window": "window", "snap": "snap %"}
    columns |= {"alignment": "alignment", "gap_mean": "gap (mean)", "gap_worst": "gap (worst)"}
    return Outcome(rows, columns, None, notes=[*notes, *joint.unlike()], latex=_windows_latex(joint, rows))


def _printed_window(joint: Joint, title: str, retentions: Mapping[str, Retentions]) -> dict[str, Any]:
    """The paper's window beside ours, and its gaps if ours are over its two benchmarks."""
    name = joint.card(title)["name"]
    for said in paper.of_model("sr_guided_windows", name):
        found = {"paper_window": "{}-{}".format(*said["window"]), "paper_l_star": said["l_star"]}
        if set(retentions) == set(printed.BENCHMARKS):
            found |= {"paper_gap_mean": said["gap_mean"], "paper_gap_worst": said["gap_worst"]}
        return found
    return {}


def _windows_latex(joint: Joint, rows: list[Row]) -> str:
    body = [
        [
            latex.escape(row["backbone"]),
            str(row["layers"]),
            str(row["l_star"]),
            row["window"].replace("-", "--"),
            row["snap"].replace("-", "--") + r"\%",
            (row["alignment"] or "none").replace("-", "--"),
            latex.number(row["gap_mean"], 1),
            latex.number(row["gap_worst"], 1),
        ]
        for row in rows
    ]
    pairs = {joint.record(row["backbone"], "layer-curve")["facts"]["pairs"] for row in rows}
    on = listed([labels.benchmark(b) for b in dict.fromkeys(b for row in rows for b in row["benchmarks"])])
    caption = (
        rf"\textbf{{SR-guided window of {latex.escape(where(row['backbone'] for row in rows))}}} "
        rf"($\gamma={GAMMA:.2f}$, {listed(map(str, sorted(pairs)))} calibration pairs). "
        rf"NDCG@5 retention on {latex.escape(on)}: ``Gap (mean)'' is how far the window it snaps to lies behind the "
        r"best of nine on the mean over benchmarks, "
        r"``Gap (worst)'' the largest gap to the best on one benchmark."
    )
    titles = ("Backbone", "$L$", "$l^*$", "Layers", "Snap", "Alignment", "Gap (mean)", "Gap (worst)")
    head = [" & ".join(title if "$" in title else latex.bold(title) for title in titles) + r" \\"]
    return latex.table(body, head, align="l" + "c" * 7, caption=caption, label="windows")
