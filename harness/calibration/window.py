"""SR-guided window selection (SAP paper, Section 3.3 and its Algorithm): which layers SAP should read.

For every layer alone: prune each calibration page by that layer's in-degree, and record the Score Retention of its
query. The last layers, those from which on retention stays below the median of all layers, align with the retrieval
objective; the window is the ρL layers before them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from harness.scoring.queries import tile_queries
from harness.scoring.sweep import score_page
from harness.store.reader import Store
from pruners import Subset, Window, keep_count
from pruners.core.contract import rank
from pruners.core.errors import PruneBoardError

GAMMA = 0.10
RHO = 0.2


@dataclass(frozen=True)
class WindowChoice:
    """The window, and all that led to it."""

    window: Window
    curve: tuple[float, ...]  # R(l)
    median: float
    boundary: int  # l*, where the alignment region begins; the number of layers if there is none
    pairs: int
    left_out: int  # pairs whose full score is not above zero
    gamma: float
    rho: float

    @property
    def empty_suffix(self) -> bool:
        """The last layer is at or above the median: there is no alignment region, and the window ends the backbone."""
        return self.boundary == len(self.curve)


def layer_curve(
    store: Store, pairs: Sequence[tuple[int, int]], gamma: float = GAMMA, advance: Callable[[int], None] | None = None
) -> tuple[np.ndarray, int]:
    """R(l) over (page, query) pairs of a store, and how many pairs were left out."""
    total, used = np.zeros(store.signals["indegree"]), 0
    for page_index, query_index in pairs:
        page = store.page(page_index)
        k = keep_count(gamma, len(page))
        orders = rank(page.signals["indegree"])[:, :k].numpy()
        tile = tile_queries([store.query(query_index)])
        full, *pruned = score_page(page.vectors, [Subset(order, (k,)) for order in orders], tile)[:, 0]
        if full > 0:
            total += np.array(pruned) / full
            used += 1
        if advance:
            advance(1)
    if not used:
        raise PruneBoardError("no calibration pair has a positive MaxSim score, so there is no retention to read")
    return total / used, len(pairs) - used


def choose_window(
    curve: Iterable[float], *, pairs: int = 0, left_out: int = 0, gamma: float = GAMMA, rho: float = RHO
) -> WindowChoice:
    """The window of a curve R(l): the ⌈ρL⌉ layers before the longest suffix that lies below the median."""
    values = tuple(float(r) for r in curve)
    median = float(np.median(values))
    boundary = len(values)
    while boundary > 0 and values[boundary - 1] < median:
        boundary -= 1
    width = math.ceil(rho * len(values) - 1e-9)
    window = Window(max(0, boundary - width), max(1, boundary))
    return WindowChoice(window, values, median, boundary, pairs, left_out, gamma, rho)
