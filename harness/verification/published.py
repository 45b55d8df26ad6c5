"""MTEB's figures of the backbones listed here, and which of them is the cheapest to meet. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterable

from harness.backbones.contract import Card
from harness.backbones.registry import catalogue, is_default
from harness.benchmarks.known import known
from harness.submissions.mteb_figures import MODELS, mteb_table

ALL = "default"
"""mteb's name of the queries of a task without languages, or (in some results) of all languages together."""

Figures = dict[str, tuple[float, int]]
"""Language -> NDCG@5 and queries."""


def published(backbone: str) -> dict[str, Figures]:
    """MTEB's figures of a backbone's default checkpoint, by task."""
    names = MODELS.get(backbone, ())
    return {task: figures for (model, task), figures in mteb_table().items() if model in names}


def published_for(card: Card) -> dict[str, Figures]:
    """MTEB's figures of just this checkpoint: others of its family have none."""
    entry = catalogue().get(card.name)
    return published(card.name) if entry and is_default(entry, card.checkpoint, card.revision) else {}


def smallest_task(tasks: Iterable[str]) -> str:
    """The one with the fewest pages: TabFQuAD with 70, for most."""
    pages = {name: sum(part["pages"] for part in task["subsets"].values()) for name, task in known()["tasks"].items()}
    return min(tasks, key=lambda task: (pages.get(task, 0), task))


def figure_to_meet(backbone: str) -> str | None:
    """The figure that verifies a backbone, in words; None if MTEB has none."""
    if not (tasks := published(backbone)):
        return None
    task = smallest_task(tasks)
    figures = [ndcg for ndcg, _ in tasks[task].values()]
    return f"{task}: NDCG@5 {100 * sum(figures) / len(figures):.1f} (MTEB)"
