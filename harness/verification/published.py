"""MTEB's figures of the backbones listed here, and which of them is the cheapest to meet. Imports nothing heavy."""

from __future__ import annotations

from harness.benchmarks.known import known
from harness.submissions.mteb_figures import MODELS, mteb_table

TABFQUAD = "VidoreTabfquadRetrieval"
ALL = "default"
"""mteb's name of the queries of a task without languages, or (in some results) of all languages together."""

Figures = dict[str, tuple[float, int]]
"""Language -> NDCG@5 and queries."""


def published(backbone: str) -> dict[str, Figures]:
    """MTEB's figures of a backbone, by task."""
    names = MODELS.get(backbone, ())
    return {task: figures for (model, task), figures in mteb_table().items() if model in names}


def smallest_task(backbone: str) -> str:
    """The task with the fewest pages of those that MTEB has a figure of: TabFQuAD with 70, for most."""
    pages = {name: sum(part["pages"] for part in task["subsets"].values()) for name, task in known()["tasks"].items()}
    return min(published(backbone) or [TABFQUAD], key=lambda task: (pages.get(task, 0), task))


def figure_to_meet(backbone: str) -> str | None:
    """The figure that verifies a backbone, in words; None if MTEB has none."""
    if not (tasks := published(backbone)):
        return None
    task = smallest_task(backbone)
    figures = [ndcg for ndcg, _ in tasks[task].values()]
    return f"{task}: NDCG@5 {100 * sum(figures) / len(figures):.1f} (MTEB)"
