"""Ward's tree in which patches that are alike share one weight: this project's own method.

docs/our-method.md says what it was developed on, every variant that was tried, what is related, and where it loses.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pruners import Page, PruneBoardError, reducer
from pruners.kernels.rows import unit_rows
from pruners.kernels.trees import cut
from pruners.kernels.weighted_ward import weighted_ward


@reducer("fair_ward", paper="PruneBoard's own: docs/our-method.md")
def fair_ward(page: Page, sharpness: float = 160.0, renormalize: bool = True) -> Callable[[int], np.ndarray]:
    """Ward merging in which patches that are alike share one weight; plain means, renormalised.

    A hundred blank patches weigh as one, so that no vectors go into telling them apart. How near patches must be to
    count as alike shrinks as the budget grows: small budgets cannot afford to tell near ones apart.

    Formula:
        w_{i} = 1 / Σ_{j} max(0, e_{i}·e_{j})^{m}, m = sharpness·k/N
        merge the a, b of least w_{a}w_{b}/(w_{a} + w_{b})·‖c_{a} − c_{b}‖^{2}, c weighted means, down to k clusters
        v_{C} = Σ_{i∈C} e_{i} / ‖Σ_{i∈C} e_{i}‖
    """
    if not 0 <= sharpness < np.inf:
        raise PruneBoardError(f"sharpness is 0 (all patches weigh the same) or more, not {sharpness}")
    directions = unit_rows(page.vectors.numpy())
    cosines = np.minimum(directions @ directions.T, np.float32(1))
    np.fill_diagonal(cosines, 1)
    with np.errstate(divide="ignore"):  # of what points away -inf: 0 to any power
        logs = np.log(np.maximum(cosines, np.float32(0)))  # once a page: a power is then an exponential
    half_squared = 1 - cosines.astype(np.float64)

    def at(k: int) -> np.ndarray:
        return cut(weighted_ward(half_squared, shares(logs, sharpness * k / len(page))), k)

    return at


def shares(logs: np.ndarray, power: float) -> np.ndarray:
    """The weight of each patch: 1 / how many are like it, itself among them. `logs [N, N]` are those of cosines."""
    if not np.float32(power) > 0:  # all are alike, those that point away too
        return np.full(len(logs), 1 / len(logs))
    return 1 / np.exp(np.float32(power) * logs).sum(1, dtype=np.float64)
