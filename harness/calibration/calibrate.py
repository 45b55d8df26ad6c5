"""Windows: measured by SR-guided selection, or the one that an evaluation should use and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.backbones.contract import Backbone, Card
from harness.benchmarks.data_set import DataSet
from harness.calibration.data import check_disjoint, draw, gold_pairs
from harness.calibration.window import GAMMA, PAIRS, RHO, choose_window, layer_curve
from harness.calibration.window_files import (
    SavedWindow,
    as_record,
    read_window,
    record,
    reported,
    window_file,
    write_window,
)
from harness.encode_on import encode_on
from harness.engine.engine import PROCESSES, WorkEngine
from harness.progress import Progress
from harness.store.reader import Store
from pruners import Window
from pruners.core.errors import PruneBoardError
from pruners.core.seed import SEED


@dataclass(frozen=True)
class BoundWindow:
    """The window an evaluation uses: `told` says to a person where it comes from, `origin` says it in the run."""

    window: Window
    told: str
    origin: Mapping[str, Any]


def calibrate(
    backbone: Backbone,
    data_set: DataSet,
    stores: Path,
    *,
    pairs: int = PAIRS,
    gamma: float = GAMMA,
    rho: float = RHO,
    seed: int = SEED,
    progress: Progress,
    engine: WorkEngine = PROCESSES,
) -> tuple[SavedWindow, Path]:
    """Measure a backbone's window and save it for evaluations."""
    if pairs < 1:
        raise PruneBoardError(f"a window is chosen on at least one pair, not {pairs}")
    store = encode_on(engine, backbone, data_set, stores, progress=progress)
    found = sr_guided(data_set, store, backbone, pairs=pairs, gamma=gamma, rho=rho, seed=seed, progress=progress)
    path = window_file(stores, backbone)
    write_window(path, found)
    return found, path


def sr_guided(
    data_set: DataSet,
    store: Store,
    backbone: Backbone,
    *,
    pairs: int = PAIRS,
    gamma: float = GAMMA,
    rho: float = RHO,
    seed: int = SEED,
    progress: Progress,
) -> SavedWindow:
    """SR-guided selection on pairs drawn from a store."""
    if "indegree" not in store.signals:
        raise PruneBoardError(
            f"the store of {data_set.name} has no in-degree per layer, so no window can be chosen; "
            f"encode it with a backbone that captures attention (it has: {', '.join(store.signals) or 'no signals'})"
        )
    drawn = draw(gold_pairs(data_set, store), pairs, seed)
    if not drawn:
        raise PruneBoardError(f"no query of {data_set.name} has a relevant page, so no window can be chosen on it")
    with progress("choose the window", total=len(drawn), done=0) as advance:
        curve, left_out = layer_curve(store, drawn, gamma, advance)
    choice = choose_window(curve, pairs=len(drawn), left_out=left_out, gamma=gamma, rho=rho)
    hashes = store.image_hashes
    return record(
        choice,
        backbone,
        seed=seed,
        benchmark=data_set.name,
        content=data_set.content,
        store=store.key,
        images=tuple(dict.fromkeys(hashes[page] for page, _ in drawn)),
    )


def given_or_saved(
    text: str | None, backbone: Backbone, stores: Path, evaluated: Mapping[str, Store]
) -> BoundWindow | None:
    """The window that a user gave (`11-14`, or a file of `harness calibrate`), or that was saved for this backbone."""
    card = backbone.card
    if text is not None and not text.endswith(".json"):
        window = Window.parse(text)
        if max(window.start + 1, window.stop or 0) > card.layers:
            raise PruneBoardError(f"window {window} asks for layers beyond the {card.layers} that {card.name} has")
        return BoundWindow(window, f"window {window}, as given", {"source": "given", "window": str(window)})
    path = Path(text) if text is not None else window_file(stores, backbone)
    if text is None and not path.is_file():
        return None
    saved = read_window(path, backbone)
    check_disjoint(saved.benchmark, saved.images, evaluated)
    how = f"SR-guided on {saved.pairs} pairs of {saved.benchmark}"
    told = f"window {saved.window} of {card.name}, {how}, saved in {path}"
    return BoundWindow(Window.parse(saved.window), told, {"source": "saved", **as_record(saved)})


def measured(
    data_set: DataSet, store: Store, backbone: Backbone, *, pairs: int, seed: int, progress: Progress
) -> BoundWindow:
    """The window found on an evaluation's own calibration set."""
    found = sr_guided(data_set, store, backbone, pairs=pairs, seed=seed, progress=progress)
    note = "; no layer of the end is below the median, so it ends the backbone" if found.empty_suffix else ""
    told = f"window {found.window} of {backbone.card.name}, SR-guided on {found.pairs} pairs of {data_set.name}{note}"
    return BoundWindow(Window.parse(found.window), told, {"source": "sr-guided", **as_record(found)})


def as_reported(card: Card) -> BoundWindow | None:
    """The SAP paper's window for this retriever, when there is nothing to calibrate on."""
    known = reported(card)
    if known is None:
        return None
    told = (
        f"window {known.window} as the SAP paper reports it for {known.checkpoint}, not measured here; "
        "`harness calibrate` measures that of your checkpoint"
    )
    origin = {"source": "reported", "window": str(known.window), "boundary": known.boundary, "for": known.checkpoint}
    return BoundWindow(known.window, told, origin)
