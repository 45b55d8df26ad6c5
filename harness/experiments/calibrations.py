"""How much the window depends on what it was calibrated on: the number of pairs, their draw, their distribution."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from harness import paper
from harness.benchmarks.known import training_draw
from harness.calibration.data import calibration_data_set, draw, gold_pairs
from harness.calibration.window import choose_window, mean_retention, pair_retention
from harness.drawing.figures import legend, looks, panels
from harness.experiments.outcome import Outcome
from harness.experiments.windows import snap
from harness.experiments.workbench import Workbench
from harness.store.reader import Store
from pruners.core.errors import PruneBoardError

OF_EACH = 100  # pairs drawn from each evaluated data set for the second distribution
DATA_SETS = 5


@dataclass(frozen=True)
class CalibrationSource:
    """A distribution of calibration pairs. Ratios of every pair are computed once; a draw is a mean over some."""

    name: str
    pool: int
    """Pairs that draws are made from. A draw of all of them is the same for every seed, and says nothing."""
    ratios: np.ndarray
    """Score Retention `[pairs, layers]` of the pairs that some draw has."""
    draw: Callable[[int, int], list[int]]
    """Size and seed -> rows of `ratios`."""
    origin: str

    def sizes(self, wanted: Sequence[int]) -> list[int]:
        return [size for size in wanted if size < self.pool]


def calibration_robustness(workbench: Workbench) -> Outcome:
    """The window that each seed chooses from N pairs, as layers and snapped to the nearest of the nine windows."""
    s = workbench.settings
    seeds = range(s.seed, s.seed + s.seeds)
    sources = [_first(workbench, seeds), _second(workbench)]
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for source in sources:
        for size in source.sizes(s.sizes):
            for seed in seeds:
                choice = choose_window(mean_retention(source.ratios[source.draw(size, seed)])[0])
                row = {"distribution": source.name, "pool": source.pool, "pairs": size, "seed": seed}
                own = {"l_star": choice.boundary, "window": str(choice.window), "empty_suffix": choice.empty_suffix}
                rows.append({**row, **own, "snap": snap(choice.window, len(choice.curve))})
        notes += _notes(source, s.sizes)
    if not rows:
        raise PruneBoardError(f"no draw can be made: {'; '.join(notes)}. Give smaller --sizes, or more pairs")
    facts: dict[str, Any] = {
        "agreement": _agreement(rows),
        "window_of_all_pairs": {source.name: _window(source.ratios) for source in sources},
        "distributions": {source.name: source.origin for source in sources},
    }
    if _is_training(workbench) and (key := paper.MODELS.get(workbench.backbone.card.name)):
        said = paper.printed()["calibration_robustness"]
        facts["paper_snapped"] = dict(zip(map(str, said["sizes"]), said[key], strict=True))
    shown = [source for source in sources if source.sizes(s.sizes)]

    def draw_figure(figure: Figure) -> None:
        places = panels(figure, [source.name for source in shown])
        windows = sorted({row["snap"] for row in rows}, key=lambda w: [int(n) for n in w.split("-")])
        look = looks(windows)
        for axes, source in zip(places, shown, strict=True):
            sizes = source.sizes(s.sizes)
            below = np.zeros(len(sizes))
            for window in windows:
                counts = np.array([_count(rows, source.name, size, window) for size in sizes], np.float64)
                kind = look[window]
                axes.bar(
                    range(len(sizes)),
                    counts,
                    0.7,
                    bottom=below,
                    color=kind.color,
                    hatch=kind.hatch,
                    edgecolor="white",
                    label=f"{window.replace('-', '–')} % of depth",
                )
                below += counts
            axes.set_xticks(range(len(sizes)), [str(size) for size in sizes])
            axes.set_xlabel(f"calibration pairs N, of {source.pool:,}")
            axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        places[0].set_ylabel("seeds that choose a window [count]")
        legend(figure, places[0])

    columns = {"distribution": "distribution", "pairs": "N", "seed": "seed", "l_star": "l*", "window": "window"}
    return Outcome(rows, {**columns, "snap": "snap %"}, draw_figure, facts, notes)


def _is_training(workbench: Workbench) -> bool:
    name = workbench.settings.calibration or workbench.benchmark.calibration
    return name is not None and training_draw(name) is not None


def _first(workbench: Workbench, seeds: Sequence[int]) -> CalibrationSource:
    """The calibration set. Of the training corpus every draw is made anew, from all of it."""
    if not _is_training(workbench):
        return _whole(
            workbench,
            workbench.calibration.name,
            workbench.calibration_store,
            gold_pairs(workbench.calibration, workbench.calibration_store),
        )
    from harness.benchmarks.calibration_sets import all_draws
    from harness.benchmarks.training_corpus import open_corpus

    s = workbench.settings
    asked = training_draw(s.calibration or workbench.benchmark.calibration or "") or {}
    corpus = open_corpus(**{name: asked[name] for name in ("path", "revision") if name in asked})
    data_set = all_draws(corpus, [size for size in s.sizes if size < len(corpus.asked)], seeds)
    store = workbench.store(data_set)
    ratios = _ratios(workbench, [(store, gold_pairs(data_set, store))])
    place = {int(page.removeprefix("train-")): i for i, page in enumerate(data_set.page_ids)}
    found = f"revision {corpus.revision or 'unknown (a folder)'}; {len(data_set.page_ids)} pairs in all draws"
    return CalibrationSource(
        "colpali-train",
        len(corpus.asked),
        ratios,
        lambda size, seed: [place[row] for row in corpus.draw(size, seed)],
        f"each draw is colpali-train(pairs=N,seed=…), from {len(corpus.asked)} pairs of the corpus; {found}",
    )


def _whole(workbench: Workbench, name: str, store: Store, pairs: list[tuple[int, int]]) -> CalibrationSource:
    """All pairs of a set that one has are the pool."""
    ratios = _ratios(workbench, [(store, pairs)])
    return CalibrationSource(name, len(ratios), ratios, _from(ratios), f"draws from all of its {len(ratios)} pairs")


def _from(ratios: np.ndarray) -> Callable[[int, int], list[int]]:
    return lambda size, seed: draw(range(len(ratios)), size, seed)


def _notes(source: CalibrationSource, sizes: Sequence[int]) -> list[str]:
    """What was not done and why, and where seeds agree because they share their pairs."""
    notes = []
    if too_large := [size for size in sizes if size >= source.pool]:
        notes.append(
            f"{source.name} has {source.pool} pairs: N = {', '.join(map(str, too_large))} left out, since every seed "
            "would draw the same pairs"
        )
    if close := [size for size in source.sizes(sizes) if 2 * size > source.pool]:
        notes.append(
            f"{source.name}: two draws of N = {', '.join(map(str, close))} out of {source.pool} have more than half "
            "of their pairs in common, so that agreement says less"
        )
    return notes


def _second(workbench: Workbench) -> CalibrationSource:
    """The second distribution: a data set that was named, or pairs of the evaluated data sets.

    The latter is the paper's own first distribution. It only asks where the window would be; no evaluation uses it.
    """
    s = workbench.settings
    if s.second_calibration:
        data_set = calibration_data_set(s.second_calibration)
        store = workbench.store(data_set)
        return _whole(workbench, data_set.name, store, gold_pairs(data_set, store))
    parts = []
    for data_set in workbench.benchmark.data_sets[:DATA_SETS]:
        store = workbench.evaluated[data_set.name]
        parts.append((store, draw(gold_pairs(data_set, store), OF_EACH, s.seed)))
    ratios = _ratios(workbench, parts)
    origin = f"draws from {len(ratios)} pairs: at most {OF_EACH} of each of {len(parts)} evaluated data sets"
    name = "an evaluated data set" if len(parts) == 1 else f"{len(parts)} evaluated data sets"
    return CalibrationSource(name, len(ratios), ratios, _from(ratios), origin)


def _ratios(workbench: Workbench, parts: Sequence[tuple[Store, list[tuple[int, int]]]]) -> np.ndarray:
    """Score Retention `[pairs, layers]` of all pairs of some stores."""
    found = []
    with workbench.progress("curve over layers", total=sum(len(pairs) for _, pairs in parts), done=0) as advance:
        for store, pairs in parts:
            found.append(pair_retention(store, pairs, advance=advance)[:, :, 0])
    return np.concatenate(found)


def _window(ratios: np.ndarray) -> str:
    return str(choose_window(mean_retention(ratios)[0]).window)


def _agreement(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The most frequent window of each distribution and size, and how many seeds chose it: snapped, as the paper counts
    them, and in layers."""
    found = []
    for source, size in dict.fromkeys((row["distribution"], row["pairs"]) for row in rows):
        here = [row for row in rows if (row["distribution"], row["pairs"]) == (source, size)]
        row: dict[str, Any] = {"distribution": source, "pairs": size}
        for what, agree in (("snap", "agree_snapped"), ("window", "agree_exact")):
            window, count = Counter(r[what] for r in here).most_common(1)[0]
            row |= {what: window, agree: f"{count}/{len(here)}"}
        found.append(row)
    return found


def _count(rows: Sequence[dict[str, Any]], source: str, size: int, window: str) -> int:
    return sum((row["distribution"], row["pairs"], row["snap"]) == (source, size, window) for row in rows)
