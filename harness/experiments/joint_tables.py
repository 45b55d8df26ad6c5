"""Tables of several backbones: the main table, and the base probe with its figure."""

from __future__ import annotations

from dataclasses import replace

from matplotlib.figure import Figure

from harness.drawing import labels, latex
from harness.drawing.figures import LOOKS, line, looks, panels
from harness.experiments.joint import Joint, Row, benchmarks_of, uneven, where
from harness.experiments.joint_figures import legend_of_all
from harness.experiments.outcome import Outcome
from harness.experiments.probes import BASE, OWN, drop_factor

BUDGETS = (0.20, 0.10, 0.05)
"""In the order of the paper's main table."""

ORDER = ("docpruner", "eos", "random", "kmeans(renormalize=false)", "kmeans", "agglomerative", "sap_adaptive", "sap")
"""Baselines first, SAP last, as the paper prints them; what is not here goes before SAP."""


def main_table(joint: Joint) -> Outcome:
    """The averages of every benchmark, backbone, method and standard budget."""
    rows = [
        {key: value for key, value in row.items() if key != "data_set"}
        for row in joint.rows("main-table")
        if row["data_set"] == "average"
    ]
    rows.sort(key=lambda row: row["benchmark"])
    columns = {"benchmark": "benchmark", "backbone": "backbone", "method": "method", "budget": "γ"}
    columns |= {"full_ndcg@5": "full NDCG@5", "score_retention": "SR", "ndcg@5": "NDCG@5", "retention": "%"}
    counts = {
        benchmark: len(data_sets) for source in joint.sources for benchmark, data_sets in source.benchmarks.items()
    }
    return Outcome(rows, columns, None, notes=uneven(rows), latex=_main_latex(rows, counts))


def _main_latex(rows: list[Row], counts: dict[str, int]) -> str:
    body: list[list[str] | str] = []
    for benchmark in benchmarks_of(rows):
        count = counts[benchmark]
        sets = f"mean over {count} data sets" if count > 1 else "one data set"
        heading = rf"\textbf{{{latex.escape(labels.benchmark(benchmark))} ({sets})}}"
        body += [r"\midrule"] if body else []
        body += [rf"\multicolumn{{12}}{{c}}{{{heading}}} \\", r"\midrule"]
        here = [row for row in rows if row["benchmark"] == benchmark]
        for i, title in enumerate(dict.fromkeys(row["backbone"] for row in here)):
            body += [r"\cmidrule{1-12}"] if i else []
            body += _backbone_lines(title, [row for row in here if row["backbone"] == title])
    groups = " & ".join(rf"\multicolumn{{3}}{{c}}{{$\gamma={budget:.2f}$}}" for budget in BUDGETS)
    rules = "".join(rf"\cmidrule(lr){{{first}-{first + 2}}}" for first in (4, 7, 10))
    each = " & ".join([r"\textbf{S.Ret} & \textbf{NDCG@5} & \textbf{\%}"] * 3)
    head = [rf"& & \textbf{{Full}} & {groups} \\", rules]
    head += [rf"\textbf{{Model}} & \textbf{{Method}} & \textbf{{NDCG@5}} & {each} \\"]
    caption = (
        rf"\textbf{{Three budgets.}} {latex.escape(where((r['backbone'] for r in rows), benchmarks_of(rows)))}: "
        r"Score Retention (S.Ret), NDCG@5, and NDCG@5 as a percentage of the full model's, at keep ratio $\gamma$. "
        r"Best method of a backbone in \textbf{bold}."
    )
    return latex.table(body, head, align="llc" + "ccc" * 3, caption=caption, label="main-table", wide=True)


def _backbone_lines(title: str, rows: list[Row]) -> list[list[str] | str]:
    """One line a method, the best of each column in bold."""
    figures = {"score_retention": 2, "ndcg@5": 2, "retention": 2}
    cells = {(row["method"], row["budget"]): row for row in rows}
    best = {
        (budget, key): max(row[key] for row in rows if row["budget"] == budget)
        for budget in {row["budget"] for row in rows}
        for key in figures
    }
    lines: list[list[str] | str] = []
    for i, method in enumerate(sorted(dict.fromkeys(row["method"] for row in rows), key=_place)):
        name = latex.escape(labels.method(method))
        start = [latex.escape(title), name, latex.number(rows[0]["full_ndcg@5"], 2)] if i == 0 else ["", name, ""]
        parts = []
        for budget in BUDGETS:
            row = cells.get((method, budget))
            for key, digits in figures.items():
                text = latex.number(row[key] if row else None, digits)
                parts.append(latex.bold(text) if row and row[key] == best[budget, key] else text)
        lines.append([*start, *parts])
    return lines


def _place(method: str) -> float:
    return ORDER.index(method) if method in ORDER else len(ORDER) - 1.5


def base_probe(joint: Joint) -> Outcome:
    """Score Retention in the window and after it, by the fine-tuned model's attention and by its base model's."""
    raw = joint.rows("base-probe")
    drops = {(r["backbone"], r["budget"], r["attention"]): _drop(r) for r in raw}
    rows = []
    for row in raw:
        place = row["backbone"], row["budget"]
        factor = drop_factor(drops.get((*place, OWN)), drops.get((*place, BASE)))
        own = {"drop": _drop(row), "drop_factor": factor if row["attention"] == OWN else None}
        rows.append({**row, **own})
    backbones = joint.having("base-probe")
    notes = [note for title in backbones for note in _said(joint, title)]
    columns = {"backbone": "backbone", "budget": "γ", "attention": "attention", "in_window": "in window"}
    columns |= {"after": "after", "drop": "drop", "drop_factor": "drop / base drop"}
    return Outcome(
        rows, columns, lambda figure: _draw_probe(figure, rows), notes=notes, latex=_probe_latex(joint, rows)
    )


def _drop(row: Row) -> float | None:
    return None if row.get("after") is None else row["in_window"] - row["after"]


def _said(joint: Joint, title: str) -> list[str]:
    facts = joint.record(title, "base-probe")["facts"]
    return [f"{title}: base attention is read from {facts.get('base', 'its base model')}; window {facts['window']}"]


def _probe_latex(joint: Joint, rows: list[Row]) -> str:
    body: list[list[str] | str] = []
    places = list(dict.fromkeys((row["backbone"], row["budget"]) for row in rows))
    for place in places:
        body += [r"\cmidrule(lr){1-6}"] if body else []
        own = [row for row in rows if (row["backbone"], row["budget"]) == place]
        for i, row in enumerate(own):
            figures = [latex.number(row.get(key), 3) for key in ("in_window", "after", "drop")]
            factor = rf"{row['drop_factor']:.1f}$\times$" if row["drop_factor"] is not None else ""
            name = f"{latex.escape(place[0])}, {place[1]:.2f}" if i == 0 else ""
            body.append([name, row["attention"], *figures, factor])
    backbones = dict.fromkeys(row["backbone"] for row in rows)
    spans = []
    for title in backbones:
        facts = joint.record(title, "base-probe")["facts"]
        spans.append(f"{latex.escape(title)} {facts['window'].replace('-', '--')}")
    caption = (
        rf"\textbf{{Base probe.}} Mean Score Retention of {latex.escape(where(backbones))} inside the SR-guided window "
        rf"(layers: {', '.join(spans)}) and after it, on calibration pairs, with attention read from the fine-tuned "
        r"retriever or from its base model. \textbf{Factor} is how many times the base model's drop the retriever's is."
    )
    titles = map(latex.bold, ("Attention", "In window", "After", "Drop", "Factor"))
    head = [" & ".join([r"\textbf{Backbone}, $\gamma$", *titles]) + r" \\"]
    drawn = (
        rf"\textbf{{Base probe.}} Mean Score Retention of {latex.escape(where(backbones))} inside the SR-guided window "
        r"and after it, with attention of the fine-tuned retriever or of its base model; the larger budget is filled."
    )
    table = latex.table(body, head, align="llcccc", caption=caption, label="base-probe")
    return table + latex.figure("base-probe.png", caption=drawn, label="base-probe")


def _draw_probe(figure: Figure, rows: list[Row]) -> None:
    """Colour and dashes say whose attention it is, markers the budget: filled for the larger one, as in the paper."""
    backbones = list(dict.fromkeys(row["backbone"] for row in rows))
    budgets = sorted({row["budget"] for row in rows}, reverse=True)
    source, marker = looks((OWN, BASE)), {budget: look.marker for budget, look in zip(budgets, LOOKS, strict=False)}
    places = panels(figure, [""] * len(backbones))
    for axes, title in zip(places, backbones, strict=True):
        own = [row for row in rows if row["backbone"] == title]
        for row in own:
            look = replace(source[row["attention"]], marker=marker[row["budget"]])
            y = [row["in_window"]] if row.get("after") is None else [row["in_window"], row["after"]]
            face = look.color if row["budget"] == budgets[0] else "white"
            label = f"{row['attention']} model, γ = {row['budget']:g}"
            line(axes, range(len(y)), y, look, label, markerfacecolor=face, markersize=7)
        has_after = any(row.get("after") is not None for row in own)
        factors = [f"{r['drop_factor']:.1f}× (γ = {r['budget']:g})" for r in own if r["drop_factor"] is not None]
        axes.set_title(f"{title}\ndrop / base model's drop: {', '.join(factors)}" if factors else title, fontsize=9)
        axes.set_xticks([0, 1], ["in the window", "after it"] if has_after else ["in the window", "no layers after it"])
        axes.set_xlim(-0.3, 1.3)
        axes.set_xlabel(f"layers of {title}")
    places[0].set_ylabel("mean Score Retention\n[MaxSim pruned / full]")
    legend_of_all(figure, 2)
