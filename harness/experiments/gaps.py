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


def gaps(retention: Mapping[str, Mapping[str, float]], window: str) -> dict[str, float]:
    """Gap (mean): to the best of nine on the mean over benchmarks. Gap (worst): the largest to the best on each alone.

    `retention` is by benchmark, then by window.
    """
    mean = {name: float(np.mean([row[name] for row in retention.values()])) for name in NINE}
    return {
        "gap_mean": mean[window] - max(mean.values()),
        "gap_worst": min(row[window] - max(row[name] for name in NINE) for row in retention.values()),
    }


def printed_gaps(backbone: str, sizes: Mapping[str, int], ours: Mapping[str, float]) -> dict[str, float]:
    """The paper's gaps beside ours; only for what it computed them on, all of ViDoRe v1 and v2."""
    rows = paper.of_model("sr_guided_windows", backbone) if sizes == SIZES else []
    return {
        name: value
        for row in rows
        for gap in ("gap_mean", "gap_worst")
        for name, value in ((f"paper_{gap}", row[gap]), (f"difference_{gap}", ours[gap] - row[gap]))
    }
