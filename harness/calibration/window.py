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
import torch

from harness.scoring.queries import tile_queries
from harness.scoring.sweep import score_page
from harness.store.reader import Store
from pruners import Page, Subset, Window, keep_count
from pruners.core.contract import rank
from pruners.core.errors import PruneBoardError

GAMMA = 0.10
RHO = 0.2
PAIRS = 500

Rankings = Callable[[Page], torch.Tensor]
"""`[rankings, N]`: scores of a page's patches, one row for each way of pruning that is tried."""


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


def every_layer(page: Page) -> torch.Tensor:
    """In-degree of each layer alone (Eq. 3)."""
    return page.signals["indegree"]


def pair_retention(
    store: Store,
    pairs: Sequence[tuple[int, int]],
    rankings: Rankings = every_layer,
    gammas: Sequence[float] = (GAMMA,),
    advance: Callable[[int], None] | None = None,
) -> np.ndarray:
    """Score Retention `[pairs, rankings, gammas]` of (page, query) pairs; NaN where the full score is not above zero.

    A page is read once, ranked by all rankings at once, and scored in one sweep against all of its queries.
    """
    places: dict[int, list[int]] = {}
    for place, (page_index, _) in enumerate(pairs):
        places.setdefault(page_index, []).append(place)
    found: list[np.ndarray | None] = [None] * len(pairs)
    for page_index, here in places.items():
        page = store.page(page_index)
        counts = tuple(keep_count(gamma, len(page)) for gamma in gammas)
        orders = rank(rankings(page))[:, : max(counts)]
        queries = tile_queries([store.query(pairs[place][1]) for place in here])
        full, *pruned = score_page(page.vectors, [Subset(order, counts) for order in orders], queries).astype(float)
        for column, place in enumerate(here):
            kept = np.array([row[column] for row in pruned]).reshape(len(orders), len(counts))
            found[place] = kept / full[column] if full[column] > 0 else np.full_like(kept, np.nan)
        if advance:
            advance(len(here))
    return np.stack([ratios for ratios in found if ratios is not None])


def mean_retention(ratios: np.ndarray) -> tuple[np.ndarray, int]:
    """The mean over the pairs of `pair_retention` that have a ratio, and how many have none."""
    usable = ~np.isnan(ratios).any(axis=tuple(range(1, ratios.ndim)))
    if not usable.any():
        raise PruneBoardError("no calibration pair has a positive MaxSim score, so there is no retention to read")
    return ratios[usable].mean(0), int((~usable).sum())


def layer_curve(
    store: Store, pairs: Sequence[tuple[int, int]], gamma: float = GAMMA, advance: Callable[[int], None] | None = None
) -> tuple[np.ndarray, int]:
    """R(l) over (page, query) pairs of a store, and how many pairs were left out."""
    curve, left_out = mean_retention(pair_retention(store, pairs, gammas=(gamma,), advance=advance))
    return curve[:, 0], left_out


def width(layers: int, rho: float = RHO) -> int:
    """k = ⌈ρL⌉, guarded against binary rounding."""
    if not 0 < rho <= 1:
        raise PruneBoardError(f"the relative width of a window is in (0, 1]; {rho!r} is not")
    return max(1, math.ceil(rho * layers - 1e-9))


def window_before(boundary: int, k: int) -> Window:
    """The k layers before l*; the start clamps at layer 0, and a window is never empty."""
    return Window(max(0, boundary - k), max(1, boundary))


def choose_window(
    curve: Iterable[float], *, pairs: int = 0, left_out: int = 0, gamma: float = GAMMA, rho: float = RHO
) -> WindowChoice:
    """The window of a curve R(l): the ⌈ρL⌉ layers before the longest suffix that lies below the median."""
    values = tuple(float(r) for r in curve)
    median = float(np.median(values))
    boundary = len(values)
    while boundary > 0 and values[boundary - 1] < median:
        boundary -= 1
    window = window_before(boundary, width(len(values), rho))
    return WindowChoice(window, values, median, boundary, pairs, left_out, gamma, rho)
