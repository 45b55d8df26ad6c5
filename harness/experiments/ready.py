"""Methods made ready for an experiment that runs them itself: windows bound, thresholds learned, as in `evaluate`."""

from __future__ import annotations

from collections.abc import Sequence

from harness.calibration.data import draw
from harness.evaluation.config import Config
from harness.evaluation.methods import Method, choose_methods, prepare, refuse_unfit
from harness.experiments.workbench import Workbench


def ready(workbench: Workbench, texts: Sequence[str], budgets: Sequence[float]) -> list[Method]:
    """Methods that can prune at these budgets; one that cannot has its `failure`. A stochastic one runs once."""
    methods = refuse_unfit(choose_methods(texts, 1), next(iter(workbench.evaluated.values())))
    fit = [method for method in methods if method.failure is None]
    window = workbench.bound.window if any(method.pruner.open_window for method in fit) else None
    pages = []
    if any(method.needs_calibration for method in fit):
        store = workbench.calibration_store
        pages = [store.page(i) for i in draw(range(len(store)), Config.calibration_pages, workbench.settings.seed)]
    return prepare(methods, window, pages, budgets)
