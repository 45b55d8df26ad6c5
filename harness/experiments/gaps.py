"""The paper's nine sliding windows, the one of them that a chosen window is called by, and how far it is behind.

Definitions: SAP paper, App. E, Table `layer_instantiation`. Both gaps are of the *snapped* window, in points of NDCG@5
retention; 0 means that no other of the nine is better.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from harness import paper
from harness.experiments.printed import SIZES
from pruners import Window

NINE = tuple(f"{10 * i}-{10 * i + 20}" for i in range(9))
"""Sliding windows of a fifth of the depth, in percent of it."""


def nine_windows(layers: int) -> dict[str, Window]:
    """The paper's windows [⌊αL⌋, ⌊βL⌋) in whole layers; at least one layer on shallow backbones."""
    found = {}
    for i, name in enumerate(NINE):
        start, stop = i * layers // 10, (i + 2) * layers // 10
        start = min(start, layers - 1)
        found[name] = Window(start, max(stop, start + 1))
    return found


def snap(window: Window, layers: int) -> str:
    """The sliding window that a chosen one is called by: the nearest start by depth, then the nearest end."""

    def distance(name: str) -> tuple[float, float]:
        start, stop = (int(part) / 100 for part in name.split("-"))
        return round(abs(start - window.start / layers), 9), round(abs(stop - (window.stop or layers) / layers), 9)

    return min(NINE, key=distance)


Retentions = Mapping[str, float]
"""Window -> NDCG@5 retention on one benchmark."""


def gaps(benchmarks: Mapping[str, Retentions], window: str) -> dict[str, float]:
    """Gap (mean): to the best of nine on the mean over benchmarks. Gap (worst): the largest to the best on any one."""
    return {
        "gap_mean": gap(over_benchmarks(benchmarks), window),
        "gap_worst": min(gap(own, window) for own in benchmarks.values()),
    }


def gap(retentions: Retentions, window: str) -> float:
    """How far a window lies behind the best of the nine on one benchmark: 0 if it is the best, else below."""
    return retentions[window] - max(retentions[name] for name in NINE)


def over_benchmarks(benchmarks: Mapping[str, Retentions]) -> dict[str, float]:
    """The mean over benchmarks, of windows that all of them have."""
    first, *rest = benchmarks.values()
    shared = [window for window in first if all(window in other for other in rest)]
    return {window: float(np.mean([own[window] for own in benchmarks.values()])) for window in shared}


def printed_gaps(backbone: str, sizes: Mapping[str, int], ours: Mapping[str, float]) -> dict[str, float]:
    """The paper's gaps beside ours; only for what it computed them on, all of ViDoRe v1 and v2."""
    rows = paper.of_model("sr_guided_windows", backbone) if sizes == SIZES else []
    return {
        name: value
        for row in rows
        for gap in ("gap_mean", "gap_worst")
        for name, value in ((f"paper_{gap}", row[gap]), (f"difference_{gap}", ours[gap] - row[gap]))
    }
