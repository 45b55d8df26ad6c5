"""How much the window depends on what it was calibrated on: the number of pairs, their draw, their distribution."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from harness import paper
from harness.calibration.data import calibration_task, draw, gold_pairs
from harness.calibration.window import choose_window, mean_retention, pair_retention
from harness.experiments.figures import legend, looks, panels
from harness.experiments.lab import Lab
from harness.experiments.outcome import Outcome
from harness.experiments.windows import snap
from harness.store.reader import Store

OF_EACH = 100  # pairs drawn from each evaluated data set for the second distribution
DATA_SETS = 5


def calibration_robustness(lab: Lab) -> Outcome:
    """Every pair's ratios are computed once; each draw of N pairs is a mean over some of them."""
    s, name = lab.settings, lab.backbone.card.name
    sources = {
        lab.calibration.name: _ratios(
            lab, [(lab.calibration_store, gold_pairs(lab.calibration, lab.calibration_store))]
        )
    }
    second, ratios = _second(lab)
    sources[second] = ratios
    rows: list[dict[str, Any]] = []
    notes = []
    for source, pairs in sources.items():
        for size in [n for n in s.sizes if n <= len(pairs)] or [len(pairs)]:
            for seed in range(s.seed, s.seed + s.seeds):
                curve, _ = mean_retention(pairs[draw(range(len(pairs)), size, seed)])
                choice = choose_window(curve)
                rows.append(
                    {
                        "distribution": source,
                        "pairs": size,
                        "seed": seed,
                        "l_star": choice.boundary,
                        "window": str(choice.window),
                        "snap": snap(choice.window, len(curve)),
                        "empty_suffix": choice.empty_suffix,
                    }
                )
        if too_large := [n for n in s.sizes if n > len(pairs)]:
            notes.append(f"{source} has {len(pairs)} pairs: N = {', '.join(map(str, too_large))} left out")
    facts: dict[str, Any] = {
        "agreement": _agreement(rows),
        "window_of_all_pairs": {n: _window(r) for n, r in sources.items()},
    }
    if (said := paper.printed()["calibration_robustness"]) and (key := paper.MODELS.get(name)):
        facts["paper"] = dict(zip(map(str, said["sizes"]), said[key], strict=True))

    def draw_figure(figure: Figure) -> None:
        places = panels(figure, list(sources))
        windows = sorted({row["window"] for row in rows}, key=lambda w: [int(n) for n in w.split("-")])
        look = looks(windows)
        for axes, source in zip(places, sources, strict=True):
            sizes = sorted({row["pairs"] for row in rows if row["distribution"] == source})
            below = np.zeros(len(sizes))
            for window in windows:
                counts = np.array([_count(rows, source, size, window) for size in sizes], np.float64)
                kind = look[window]
                options: dict[str, Any] = {
                    "color": kind.color,
                    "hatch": kind.hatch,
                    "edgecolor": "white",
                    "label": f"layers {window}",
                }
                axes.bar(range(len(sizes)), counts, 0.7, bottom=below, **options)
                below += counts
            axes.set_xticks(range(len(sizes)), [str(size) for size in sizes])
            axes.set_xlabel("calibration pairs N")
            axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        places[0].set_ylabel("seeds that choose a window [count]")
        legend(figure, places[0])

    columns = {"distribution": "distribution", "pairs": "N", "seed": "seed", "l_star": "l*", "window": "window"}
    return Outcome(rows, {**columns, "snap": "snap %"}, draw_figure, facts, notes)


def _second(lab: Lab) -> tuple[str, np.ndarray]:
    """The second distribution: a data set that was named, or pairs of the evaluated data sets.

    The latter is the paper's own first distribution. It only asks where the window would be; no evaluation uses it.
    """
    s = lab.settings
    if s.second_calibration:
        task = calibration_task(s.second_calibration)
        store = lab.store(task)
        return task.name, _ratios(lab, [(store, gold_pairs(task, store))])
    parts = []
    for task in lab.suite.tasks[:DATA_SETS]:
        store = lab.evaluated[task.name]
        parts.append((store, draw(gold_pairs(task, store), OF_EACH, s.seed)))
    return f"{len(parts)} evaluated data sets", _ratios(lab, parts)


def _ratios(lab: Lab, parts: Sequence[tuple[Store, list[tuple[int, int]]]]) -> np.ndarray:
    """Score Retention `[pairs, layers]` of all pairs of some stores."""
    found = []
    with lab.progress("curve over layers", total=sum(len(pairs) for _, pairs in parts), done=0) as advance:
        for store, pairs in parts:
            found.append(pair_retention(store, pairs, advance=advance)[:, :, 0])
    return np.concatenate(found)


def _window(ratios: np.ndarray) -> str:
    return str(choose_window(mean_retention(ratios)[0]).window)


def _agreement(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The most frequent window of each distribution and size, and how many seeds chose it."""
    found = []
    for source, size in dict.fromkeys((row["distribution"], row["pairs"]) for row in rows):
        here = [row["window"] for row in rows if (row["distribution"], row["pairs"]) == (source, size)]
        window, count = Counter(here).most_common(1)[0]
        found.append({"distribution": source, "pairs": size, "window": window, "agree": f"{count}/{len(here)}"})
    return found


def _count(rows: Sequence[dict[str, Any]], source: str, size: int, window: str) -> int:
    return sum((row["distribution"], row["pairs"], row["window"]) == (source, size, window) for row in rows)
