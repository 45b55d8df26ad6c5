"""Budgets: how many of a page's vectors a keep ratio γ leaves. No other place rounds."""

from __future__ import annotations

import math
from functools import lru_cache

from .errors import PruneBoardError

STANDARD = (0.05, 0.10, 0.20)
"""The leaderboard's columns."""

SWEEP = (0.01, 0.02, 0.04, 0.05, 0.10, 1 / 9, 0.20, 0.25, 0.3, 0.5, 0.7, 0.9)
"""The standard budgets and those of the curves. 1.0, the full model, always runs beside either."""

UNPRUNED = 0.9999
"""The budget at which a codec alone is measured: every vector of a page that has fewer than 10,000. 1.0 is the full
model, which stores float16 and stands beside every other figure."""

_GUARD = 1e-9  # 0.07 * 100 is 7.000000000000001 in binary; without the guard its ceiling would be 8


@lru_cache(maxsize=4096)
def keep_count(budget: float, n: int) -> int:
    """k = ceil(γN), with 1 <= k <= N."""
    return min(n, max(1, math.ceil(check_budget(budget) * n - _GUARD)))


def check_budget(budget: float) -> float:
    """The budget itself, if it is one."""
    if not 0 < budget <= 1:  # also refuses NaN
        raise PruneBoardError(f"a budget is the fraction of vectors kept, in (0, 1]; {budget!r} is not")
    return budget


def drifted(realised: float, budget: float) -> bool:
    """Whether an adaptive method missed its budget: by more than 0.005 and by more than 5 % of it."""
    return abs(realised - budget) > max(0.005, 0.05 * budget)
