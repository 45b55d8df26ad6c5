"""Backbone pages: the retriever, its per-layer curve with the window chosen from it, and its full-model figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.submissions.checks import MtebCheck, compare_with_mteb
from harness.submissions.schema import BackboneFacts
from leaderboard.rows import known
from leaderboard.views import View
from leaderboard.words import file_name

WIDTH, HEIGHT, EDGE = 640, 240, 60


@dataclass(frozen=True)
class Curve:
    """R(l) of SR-guided selection, in pixels, and the window it led to."""

    points: tuple[tuple[float, float, str], ...]
    ticks: tuple[tuple[float, str], ...]
    scale: tuple[tuple[float, str], ...]
    """Score Retention at heights of the plot."""
    median: float
    window: tuple[float, float]
    words: str
    rows: tuple[tuple[int, float, bool], ...]

    @property
    def path(self) -> str:
        return " ".join(f"{x:g},{y:g}" for x, y, _ in self.points)


@dataclass(frozen=True)
class FullModel:
    """NDCG@5 of the full model on a benchmark, per data set, as its submissions have it; and MTEB's, where known."""

    benchmark: str
    submitter: str
    status: str
    rows: tuple[tuple[str, float], ...]
    mean: float | None
    official: dict[str, MtebCheck]
    """By data set; "" is the mean."""


@dataclass(frozen=True)
class BackbonePage:
    name: str
    cards: tuple[BackboneFacts, ...]
    views: tuple[View, ...]
    curve: Curve | None
    full: tuple[FullModel, ...]

    @property
    def slug(self) -> str:
        return file_name(self.name)

    @property
    def checked(self) -> bool:
        return any(full.official for full in self.full)

    @property
    def nano(self) -> bool:
        return self.name == "nano"


def backbone_pages(views: Sequence[View]) -> list[BackbonePage]:
    found: dict[tuple[str, str], list[View]] = {}
    for view in views:
        found.setdefault((view.backbone, view.kind), []).append(view)
    names = [name for name, _ in found]
    return [_page(name if names.count(name) == 1 else f"{name} ({kind})", v) for (name, kind), v in found.items()]


def _page(name: str, views: Sequence[View]) -> BackbonePage:
    lines = [line for view in views for line in view.lines]
    cards = {line.entry.submission.backbone.model_dump_json(): line.entry.submission.backbone for line in lines}
    curves = (layer_curve(line.method.calibrated) for line in lines)
    return BackbonePage(
        name,
        tuple(cards.values()),
        tuple(views),
        next((curve for curve in curves if curve), None),
        tuple(full for view in views for full in _full_models(view)),
    )


def _full_models(view: View) -> list[FullModel]:
    """Each distinct full model of a view once: submissions of one run share it."""
    found: dict[tuple[tuple[str, float], ...], FullModel] = {}
    for line in view.lines:
        there = [name for name in view.data_sets if name in line.full.data_sets]
        rows = tuple((name, value) for name in there if (value := known(line.full.data_sets[name].ndcg_5)) is not None)
        origin = line.entry.submission.origin
        if rows:
            checks = compare_with_mteb(line.entry.submission, line.full.complete)
            mean, official = line.full.ndcg.get("5"), {check.data_set: check for check in checks}
            full = FullModel(view.benchmark, origin.submitter, line.entry.status, rows, mean, official)
            found.setdefault(rows, full)
    return list(found.values())


def layer_curve(calibrated: Mapping[str, Any]) -> Curve | None:
    """The curve in a method's calibrated state, if there is one. Submitted data: anything may be in there."""
    state = calibrated.get("window")
    if not isinstance(state, Mapping):
        return None
    curve, median, window = state.get("curve"), state.get("median"), _window(state.get("window"))
    if not isinstance(curve, (list, tuple)) or not 2 <= len(curve) <= 200 or window is None:
        return None
    if not all(_is_number(value) for value in (*curve, median)) or not 0 <= window[0] <= window[1] < len(curve):
        return None
    assert isinstance(median, (int, float)), "looked at above"
    low, high = min(curve) - 0.02, max(curve) + 0.02
    step = (WIDTH - EDGE - 12) / (len(curve) - 1)
    x = [round(EDGE + step * layer, 1) for layer in range(len(curve))]

    def y(value: float) -> float:
        return round(HEIGHT - 34 - (value - low) / (high - low) * (HEIGHT - 46), 1)

    first, last = window
    return Curve(
        tuple((x[i], y(r), f"layer {i}: SR {r:.3f}") for i, r in enumerate(curve)),
        tuple((x[i], str(i)) for i in range(0, len(curve), max(1, len(curve) // 14))),
        tuple((y(value), f"SR {value:.2f}") for value in (min(curve), max(curve)) if abs(y(value) - y(median)) > 14),
        y(median),
        (max(x[0], x[first] - step / 2), min(x[-1], x[last] + step / 2)),
        _words(first, last, curve[-1] < median),
        tuple((i, float(r), first <= i <= last) for i, r in enumerate(curve)),
    )


def _words(first: int, last: int, has_suffix: bool) -> str:
    if has_suffix:
        return f"The last layers, which stay below the median, serve retrieval; SAP reads those before: {first}–{last}."
    return f"The last layer is not below the median, so that there is nothing to leave out: SAP reads {first}–{last}."


def _window(text: Any) -> tuple[int, int] | None:
    """`11-14`, last layer included, or one layer."""
    if not isinstance(text, str):
        return None
    first, _, last = text.partition("-")
    return (int(first), int(last or first)) if first.isdecimal() and (last or first).isdecimal() else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e6


def backbone_size() -> dict[str, int]:
    """Of the curve's drawing."""
    return {"width": WIDTH, "height": HEIGHT, "edge": EDGE}
