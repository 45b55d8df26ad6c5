"""The headline figure over budgets: the normalised area under retention against the logarithm of the budget.

    area = ∫ R(γ) d log γ / (log γ_max - log γ_min)        γ from the smallest to the largest standard budget

R is linear in log γ between the standard budgets, so the area is a weighted mean of the retentions there: in percent of
the full model, 100 for a method that loses nothing. On a log axis halving an index counts the same wherever it is done.
Budgets are nominal, the same for all methods; a method that realises less is not paid for it, and its row says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from pruners.core.budget import STANDARD


def weights(budgets: tuple[float, ...] = STANDARD) -> np.ndarray:
    """The trapezoidal rule on log γ: what the retention at each budget counts. They sum to 1."""
    x = np.log(budgets)
    widths = np.diff(x)
    share = np.zeros(len(x))
    share[:-1] += widths / 2
    share[1:] += widths / 2
    return share / math.log(budgets[-1] / budgets[0])


def area(retentions: Mapping[float, float | None]) -> float | None:
    """The headline of a method; none unless it has every standard budget."""
    known = [value for budget in STANDARD if (value := retentions.get(budget)) is not None]
    return float(np.dot(weights(), known)) if len(known) == len(STANDARD) else None
