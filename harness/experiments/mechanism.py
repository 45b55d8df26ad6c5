"""Experiments to look at: which patches methods keep of a page, and where attention goes layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from harness.calibration.data import draw as draw_from
from harness.calibration.data import gold_pairs
from harness.drawing import labels
from harness.drawing.figures import legend, line, looks
from harness.evaluation.methods import choose_methods, prepare
from harness.experiments.outcome import Outcome
from harness.experiments.workbench import Workbench
from harness.why.figure import PANEL, draw_layers, draw_panels, panels_height
from harness.why.hits import hits_of
from harness.why.kept_vectors import SUBSET, kept_at
from harness.why.page_view import DrawnCell, Layers, PageView
from harness.why.pages import Pages
from harness.why.show import LAYERED, LONGEST
from harness.why.survey import BLANK
from pruners import STANDARD
from pruners.core.budget import keep_count
from pruners.core.contract import rank
from pruners.core.errors import PruneBoardError

SHOWN = ("sap", "docpruner", "kmeans(renormalize=false)", "random")
"""The paper's methods."""
GAMMA = 0.10
CALIBRATION_PAGES = 128
NAMES = {"indegree": "in-degree", "eos": "EOS"}


def kept_patches(lab: Workbench) -> Outcome:
    """One page that answers a query, with what each method keeps of it at three budgets."""
    pages, index, query_index = _page(lab)
    page = pages.page(index)
    store = lab.evaluated[pages.data_set.name]
    budgets = sorted(STANDARD)
    chosen = [m for m in choose_methods(SHOWN, 1) if set(m.pruner.needs) <= page.available]
    learning = draw_from(range(len(lab.calibration_store)), CALIBRATION_PAGES, lab.settings.seed)
    ready = prepare(chosen, lab.bound.window, [lab.calibration_store.page(i) for i in learning], budgets)
    if failed := [method.failure for method in ready if method.failure is not None]:
        raise PruneBoardError(failed[0])
    rows: list[dict[str, Any]] = []
    cells = []
    for method in ready:
        kept = kept_at(method.pruner, page, budgets, seed=lab.settings.seed)
        cells.append([DrawnCell(labels.method(method.text), b, each) for b, each in zip(budgets, kept, strict=True)])
        for cell in cells[-1]:
            hits = hits_of(store.query(query_index), page.vectors, cell.kept)
            whole = cell.kept.kind == SUBSET
            rows.append(
                {
                    "method": cell.method,
                    "budget": cell.budget,
                    "vectors": len(cell.kept),
                    "hits_kept": float((cell.kept.labels[hits.before] >= 0).mean()) if whole else None,
                    "score_retention": hits.score_after / hits.score_before,
                }
            )
    view = PageView(page.id, pages.data_set.name, pages.canvas(index, page, LONGEST), cells)

    def draw(figure: Figure) -> None:
        figure.set_size_inches(PANEL * (1 + len(budgets)) + 0.3, panels_height(view) + 0.3)
        draw_panels(figure, view)

    columns = {
        "method": "method",
        "budget": "γ",
        "vectors": "vectors",
        "hits_kept": "hits kept",
        "score_retention": "SR",
    }
    query = store.query_ids[query_index]
    facts = {"data_set": pages.data_set.name, "page": page.id, "query": query, "vectors": len(page)}
    note = "Hits kept: of the patches that the query's tokens match on the whole page, the share that is kept."
    return Outcome(rows, columns, draw, facts, [note])


def mechanism(lab: Workbench) -> Outcome:
    """What each layer's attention would keep, over pairs of a query and its page; and one page's heat maps."""
    pages, index, _ = _page(lab)
    page = pages.page(index)
    signals = [name for name in LAYERED if name in page.signals]
    if not signals:
        raise PruneBoardError(f"{lab.backbone.card.name} captures no attention, so there is no mechanism to look at")
    pairs = lab.pairs()
    shares: dict[str, list[np.ndarray]] = {name: [] for name in signals}
    with lab.progress("attention by layer", total=len(pairs), done=0) as advance:
        for place, query in pairs:
            other = lab.calibration_store.page(place)
            hits = (lab.calibration_store.query(query) @ other.vectors.T).argmax(1).numpy()
            blank = other.signals["ink"][0].numpy() < BLANK if "ink" in other.signals else None
            for name in signals:
                shares[name].append(_of_layers(other.signals[name], hits, blank))
            advance(1)
    window, layers = lab.bound.window, lab.backbone.card.layers
    rows: list[dict[str, Any]] = []
    for name in signals:
        means = np.mean(shares[name], axis=0)
        rows += [
            {
                "signal": NAMES[name],
                "layer": layer,
                "hits_kept": float(means[layer, 0]),
                "blank_kept": None if np.isnan(means[layer, 1]) else float(means[layer, 1]),
                "in_window": window.start <= layer < (window.stop or layers),
            }
            for layer in range(len(means))
        ]
    shown = Layers({NAMES[name]: page.signals[name] for name in signals}, window)
    view = PageView(page.id, pages.data_set.name, pages.canvas(index, page, LONGEST), [], None, shown)

    def draw(figure: Figure) -> None:
        _draw_mechanism(figure, view, rows, len(signals))

    columns = {"signal": "signal", "layer": "layer", "hits_kept": "hits kept", "blank_kept": "blank"}
    facts = {"pairs": len(pairs), "gamma": GAMMA, "window": str(window), "page": page.id, "blank_below": BLANK}
    note = (
        f"Of the {100 * GAMMA:g} % of patches that a layer ranks first: the share of query hits in them, and of blanks."
    )
    return Outcome(rows, {**columns, "in_window": "window"}, draw, facts, [note])


def _draw_mechanism(figure: Figure, view: PageView, rows: Sequence[dict[str, Any]], signals: int) -> None:
    layers = max(row["layer"] for row in rows) + 1
    width, height = view.canvas.size
    small = 8.4 / layers * height / width + 0.25
    figure.set_size_inches(8.6, 3.4 + signals * small)
    grid = figure.add_gridspec(1 + signals, layers, height_ratios=[2.6, *[small] * signals])
    axes = figure.add_subplot(grid[0, :])
    names = list(dict.fromkeys(row["signal"] for row in rows))
    look = looks(f"{name}: {what}" for name in names for what in ("hits kept", "blank"))
    for name in names:
        for key, what in (("hits_kept", "hits kept"), ("blank_kept", "blank")):
            here = [row for row in rows if row["signal"] == name and row[key] is not None]
            label = f"{name}: {what}"
            if here:
                line(axes, [row["layer"] for row in here], [row[key] for row in here], look[label], label)
    axes.set(xlabel="decoder layer [index from 0]", ylabel=f"share of the {100 * GAMMA:g} % kept\nby one layer alone")
    window = view.layers.window if view.layers else None
    if window:
        stop = window.stop or layers
        axes.axvspan(
            window.start - 0.5, stop - 0.5, color="#e69f00", alpha=0.15, linewidth=0, label="window, framed below"
        )
    legend(figure, axes, 3)
    maps = [[figure.add_subplot(grid[1 + r, layer]) for layer in range(layers)] for r in range(signals)]
    draw_layers(np.array(maps, dtype=object), view)


def _of_layers(signal: Any, hits: np.ndarray, blank: np.ndarray | None) -> np.ndarray:
    """`[L, 2]`: of the patches that each layer ranks first, the share of hits they hold, and of blanks among them."""
    count = keep_count(GAMMA, signal.shape[1])
    found = []
    for order in rank(signal)[:, :count]:
        empty = np.nan if blank is None else blank[order].mean()
        found.append((np.isin(hits, order).mean(), empty))
    return np.array(found, float)


def _page(lab: Workbench) -> tuple[Pages, int, int]:
    """The first page of the benchmark that answers a query, and the first such query."""
    data_set = lab.benchmark.data_sets[0]
    store = lab.evaluated[data_set.name]
    index, query = min(gold_pairs(data_set, store))
    return Pages(data_set, store, lambda: lab.backbone), index, query
