"""What pruning costs while an index is made: milliseconds a page, and memory of reading attention."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from harness import paper
from harness.bench.capture import measure
from harness.calibration.data import draw
from harness.calibration.window import GAMMA
from harness.evaluation.methods import choose_methods, needs_calibration, prepare, refuse_unfit
from harness.experiments.figures import legend, line, looks, panels
from harness.experiments.lab import Lab
from harness.experiments.outcome import Outcome
from pruners import Page
from pruners.core.apply import SEED
from pruners.core.given import Given

TIMED = ("random", "docpruner", "sap", "kmeans", "agglomerative", "token_pooling")
FORWARD = "encode a page"
PRINTED = {FORWARD: "full_forward", "random": "random", "docpruner": "eos_adaptive", "sap": "sap", "kmeans": "kmeans"}
ENCODED = 8  # pages encoded to see what that costs


def pruning_latency(lab: Lab) -> Outcome:
    """The median over pages of pruning one of them at γ = 0.10, beside encoding it."""
    pages = _pages(lab)
    methods = refuse_unfit(choose_methods(TIMED, 1), next(iter(lab.evaluated.values())))
    sample = []
    if any(needs_calibration(m.pruner) for m in methods):
        store = lab.calibration_store
        sample = [store.page(i) for i in draw(range(len(store)), 128, lab.settings.seed)]
    ready = prepare(methods, lab.bound.window, sample, (GAMMA,))
    times = {FORWARD: _encoding(lab)}
    with lab.progress("time the methods", total=len(ready), done=0) as advance:
        for method in ready:
            if method.failure is None:
                given = [Given(page.id, SEED, 0) for page in pages]
                method.pruner.prune(pages[0], (GAMMA,), given[0])  # compiles what is not compiled yet
                times[method.text] = [
                    _milliseconds(method.pruner.prune, page, (GAMMA,), g) for page, g in zip(pages, given, strict=True)
                ]
            advance(1)
    forward = float(np.median(times[FORWARD]))
    said = paper.printed()["pruning_latency_ms_h200"] if lab.backbone.card.name == "jina-v4" else {}
    rows: list[dict[str, Any]] = []
    for name, values in times.items():
        median = float(np.median(values))
        share = None if name == FORWARD else 100 * median / forward
        row = {"what": name, "milliseconds": median, "quartiles": np.quantile(values, [0.25, 0.75]).round(4).tolist()}
        known = said.get(PRINTED.get(name, ""))
        rows.append({**row, "overhead_percent": share, **({"paper_h200": known} if known is not None else {})})

    def draw_figure(figure: Figure) -> None:
        (axes,) = panels(figure, [""])
        names, medians = [r["what"] for r in rows][::-1], [r["milliseconds"] for r in rows][::-1]
        axes.barh(names, medians, color="0.75", edgecolor="black", hatch="//", label="median of the pages timed")
        for place, value in enumerate(medians):
            axes.annotate(f"{value:.3g}", (value, place), xytext=(3, 0), textcoords="offset points", va="center")
        axes.set_xscale("log")
        axes.set_xlim(right=max(medians) * 4)
        axes.set_xlabel("time a page [ms, log scale]")
        axes.grid(axis="y", visible=False)
        legend(figure, axes)

    notes = [
        f"{len(pages)} pages of {int(np.mean([len(p) for p in pages]))} vectors on average; pruning only, on the CPU. "
        f"Encoding: {len(times[FORWARD])} pages one at a time on {getattr(lab.backbone, 'device', 'cpu')}."
    ]
    columns = {"what": "what", "milliseconds": "ms", "overhead_percent": "% of encoding", "paper_h200": "paper, H200"}
    return Outcome(rows, columns, draw_figure, notes=notes)


def peak_memory(lab: Lab) -> Outcome:
    """Peak memory of four ways to read attention, each in a process of its own, by the number of tokens."""
    found = measure(lab.settings.tokens, repeats=1, threads=1, progress=lab.progress)
    rows = [dict(row) for row in found]
    notes = [
        "A random decoder of Qwen2-VL's kind on the CPU (12 layers, hidden 512), the same as `harness bench capture`: "
        "it shows how memory grows, not how much your backbone needs.",
        *(f"{row['tokens']} tokens, {row['way']}: {row['note']}" for row in rows if row["note"]),
    ]
    ways = list(dict.fromkeys(row["way"] for row in rows))

    def draw_figure(figure: Figure) -> None:
        (axes,) = panels(figure, [""])
        look = looks(ways)
        for way in ways:
            here = [row for row in rows if row["way"] == way and "extra_mb" in row]
            line(axes, [row["tokens"] for row in here], [row["extra_mb"] for row in here], look[way], way)
        axes.set_yscale("log")
        axes.set_xlabel("tokens of a page")
        axes.set_ylabel("peak memory above the\nloaded model [MB, log scale]")
        legend(figure, axes, 2)

    facts = {"paper_gpu_gb_colqwen2": paper.printed()["peak_gpu_memory_gb_colqwen2"]}
    columns = {"tokens": "tokens", "way": "way", "peak_mb": "peak MB", "extra_mb": "extra MB", "extra_mb_ratio": "x"}
    return Outcome(rows, columns, draw_figure, facts, notes)


def _pages(lab: Lab) -> list[Page]:
    """Pages to time, drawn over all data sets."""
    places = [(store, i) for store in lab.evaluated.values() for i in range(len(store))]
    return [store.page(i) for store, i in draw(places, lab.settings.timed_pages, lab.settings.seed)]


def _encoding(lab: Lab) -> list[float]:
    task = lab.suite.tasks[0]
    images = [task.image(i) for i in range(min(ENCODED, lab.settings.timed_pages, len(task.page_ids)))]
    lab.backbone.encode_pages(images[:1])
    with lab.progress("time the backbone", total=len(images), done=0) as advance:
        times = []
        for image in images:
            times.append(_milliseconds(lab.backbone.encode_pages, [image]))
            advance(1)
    return times


def _milliseconds(call: Any, *arguments: Any) -> float:
    start = time.perf_counter()
    call(*arguments)
    return 1000 * (time.perf_counter() - start)
