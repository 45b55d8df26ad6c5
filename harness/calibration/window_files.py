"""Windows on disk: one file a backbone, with the curve, the settings and the hashes of what it was learned from.

`harness calibrate` writes them into the folder of stores, `harness evaluate` finds them there. A window belongs to
the backbone whose attention it was read from: for another one, or another revision, it is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pydantic

from harness import paper
from harness.backbones.contract import Backbone, Card
from harness.backbones.made_with import made_with
from harness.calibration.window import WindowChoice, choose_window
from harness.files import write_atomically
from harness.store.format import store_key
from pruners import Window
from pruners.core.errors import PruneBoardError

FORMAT = 1


@dataclass(frozen=True)
class SavedWindow:
    """What `harness calibrate` found."""

    format: int
    backbone: Mapping[str, str | int]
    """What makes it this backbone and no other; see `identity`."""
    window: str
    curve: tuple[float, ...]
    median: float
    boundary: int
    empty_suffix: bool
    pairs: int
    left_out: int
    gamma: float
    rho: float
    seed: int
    benchmark: str
    content: Mapping[str, str]
    """Hashes of the corpus, queries and qrels that were read."""
    store: str
    images: tuple[str, ...]
    """Hashes of the pages it was learned from, so that they are never evaluated by mistake."""


def identity(backbone: Backbone) -> dict[str, str | int]:
    """What decides where a backbone's attention collapses: weights, depth and prompt, and the code and libraries that
    run them. Device and precision do not.
    """
    names = ("name", "revision", "layers", "heads", "signals_from", "page_prompt")
    return {**{name: getattr(backbone.card, name) for name in names}, **made_with(backbone)}


def record(
    choice: WindowChoice,
    backbone: Backbone,
    *,
    seed: int,
    benchmark: str,
    content: Mapping[str, str],
    store: str,
    images: tuple[str, ...],
) -> SavedWindow:
    """A choice with all that it rests on."""
    fields: dict[str, Any] = {**asdict(choice), "window": str(choice.window), "empty_suffix": choice.empty_suffix}
    origin: dict[str, Any] = {
        "seed": seed,
        "benchmark": benchmark,
        "content": dict(content),
        "store": store,
        "images": images,
    }
    return SavedWindow(format=FORMAT, backbone=identity(backbone), **fields, **origin)


def window_file(stores: Path, backbone: Backbone) -> Path:
    """Where the window of a backbone is kept."""
    word = "".join(c if c.isalnum() or c in "._-" else "_" for c in backbone.card.name)
    return stores / "windows" / f"{word}--{store_key({'window_of': identity(backbone)})}.json"


def write_window(path: Path, saved: SavedWindow) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, (json.dumps(asdict(saved), indent=1, ensure_ascii=False) + "\n").encode())


def read_window(path: Path, backbone: Backbone) -> SavedWindow:
    """The window in a file, if it was made for this backbone."""
    try:
        saved = pydantic.TypeAdapter(SavedWindow).validate_json(path.read_bytes())
        window = Window.parse(saved.window)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "its text"
        reason = f"{where}: {first['msg']}"
        raise PruneBoardError(f"{path} holds no window ({reason}); make one with `harness calibrate`") from None
    except OSError as error:
        raise PruneBoardError(f"{path} cannot be read as a window: {error.strerror}") from error
    if saved.format != FORMAT:
        raise PruneBoardError(f"{path} has window format {saved.format}, this release reads {FORMAT}; calibrate again")
    for name, ours in identity(backbone).items():
        theirs = saved.backbone.get(name)
        if theirs != ours:
            raise PruneBoardError(
                f"the window in {path} was made for another backbone: {name} {theirs!r} there, {ours!r} here; "
                "calibrate this one with `harness calibrate`"
            )
    if (window.stop or 0) > backbone.card.layers or len(saved.curve) != backbone.card.layers:
        raise PruneBoardError(f"{path} is inconsistent: window {window} and a curve of {len(saved.curve)} layers")
    if str(chosen := choose_window(saved.curve, rho=saved.rho).window) != str(window):
        raise PruneBoardError(
            f"{path} says {window}, but its own curve gives {chosen}: it was edited. Calibrate again, or name the "
            f"layers yourself with --window {window}"
        )
    return saved


@dataclass(frozen=True)
class Reported:
    """A window that the SAP paper printed: for this retriever, but not measured here."""

    window: Window
    boundary: int
    checkpoint: str


def reported(card: Card) -> Reported | None:
    """The paper's window for a retriever that it evaluated, if the depth is the same."""
    for row in paper.of_model("sr_guided_windows", card.name):
        if row["layers"] == card.layers:
            first, last = row["window"]
            return Reported(Window(first, last + 1), row["l_star"], paper.CHECKPOINTS[card.name])
    return None


def as_record(saved: SavedWindow) -> dict[str, Any]:
    """What a run keeps of it: all but the page hashes."""
    return {name: value for name, value in asdict(saved).items() if name not in ("images", "format")}
