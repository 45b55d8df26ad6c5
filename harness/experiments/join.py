"""Joining finished folders of several backbones into the paper's tables and figures that show all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from harness.drawing import latex
from harness.experiments.joint import Joint
from harness.experiments.joint_correlation import sr_ndcg
from harness.experiments.joint_figures import budget_curve, layer_curve
from harness.experiments.joint_sources import read_records, read_sources
from harness.experiments.joint_tables import base_probe, main_table
from harness.experiments.joint_windows import window_ablation, windows
from harness.experiments.outcome import ENDINGS, Outcome, write_outcome
from harness.files import write_atomically
from pruners.core.errors import PruneBoardError

DOCUMENT = "joint.tex"
"""All tables and figures in one document that compiles as it is."""


@dataclass(frozen=True)
class Item:
    """A joint table or figure, and the experiments it is made from."""

    name: str
    stands_for: str
    reads: tuple[str, ...]
    make: Callable[[Joint], Outcome]


ITEMS = (
    Item("main-table", "Table `global_results` (App. F)", ("main-table",), main_table),
    Item("budget-curve", "Figure 4", ("budget-curve",), budget_curve),
    Item("window-ablation", "Table 1", ("window-ablation",), partial(window_ablation, budget=0.10)),
    Item(
        "window-ablation-g020",
        "Table `window_ablation_g020` (App. K)",
        ("window-ablation",),
        partial(window_ablation, budget=0.20),
    ),
    Item(
        "window-ablation-g005",
        "Table `window_ablation_g005` (App. K)",
        ("window-ablation",),
        partial(window_ablation, budget=0.05),
    ),
    Item("layer-curve", "Figure 5", ("layer-curve",), layer_curve),
    Item("windows", "Table `layer_instantiation` (App. E)", ("layer-curve", "window-ablation"), windows),
    Item("base-probe", "Figure 6 and Table `base_probe` (App. L)", ("base-probe",), base_probe),
    Item("sr-ndcg", "Figure 8 (App. Q) and Section 4.6", ("sr-ndcg",), sr_ndcg),
)


@dataclass(frozen=True)
class Joined:
    """One item: its files, or why it is left out."""

    item: Item
    files: dict[str, Path]
    notes: Sequence[str]
    left_out: str | None = None

    def record(self) -> dict[str, Any]:
        if self.left_out:
            return {"experiment": self.item.name, "left_out": self.left_out}
        stored = json.loads(self.files["json"].read_text(encoding="utf-8"))
        return {**stored, "files": {ending: str(path) for ending, path in self.files.items()}}


def join(folders: Sequence[Path], out: Path) -> list[Joined]:
    """Everything that can be made of the folders. What an earlier join left and this one cannot make is taken away."""
    sources, notes = read_sources(folders)
    if any("joined" not in record for record in read_records(out).values()):
        raise PruneBoardError(f"--out {out} is a folder of experiments, whose files would be overwritten; name another")
    joint = Joint(sources)
    origin = [source.identity() for source in sources]
    done = [_make(joint, item, out, origin, notes) for item in ITEMS]
    made = [joined.item.name for joined in done if not joined.left_out]
    write_atomically(out / DOCUMENT, latex.document(made).encode())
    return done


def _make(joint: Joint, item: Item, out: Path, origin: list[dict[str, Any]], notes: Sequence[str]) -> Joined:
    files = {ending: out / f"{item.name}.{ending}" for ending in ENDINGS}
    backbones = joint.having(*item.reads)
    if not backbones:
        for path in files.values():
            path.unlink(missing_ok=True)
        return Joined(item, {}, (), f"needs {' and '.join(item.reads)} of one backbone, finished")
    outcome = item.make(joint)
    told = [*joint.missing(*item.reads), *outcome.notes, *notes]
    stands_for = f"SAP paper, {item.stands_for}"
    about = {"experiment": item.name, "stands_for": stands_for, "backbones": backbones, "joined": origin}
    whole = Outcome(outcome.rows, outcome.columns, outcome.draw, outcome.facts, told, outcome.latex)
    write_outcome(out, item.name, whole, about)
    written = {ending: path for ending, path in files.items() if outcome.draw or ending not in ("svg", "png")}
    return Joined(item, written, told)
