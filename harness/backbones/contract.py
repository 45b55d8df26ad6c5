"""What a backbone is: the small protocol between a retriever (of any framework) and the rest of the harness.

A backbone turns page images (or their texts) into vectors, a patch grid and signals, and query texts into vectors. One
forward pass a page; nothing here knows about stores, pruners or metrics. A retriever of one's own is a file with one
decorated loader:

    from harness.backbones.contract import Card, EncodedPage, Options, backbone

    @backbone("mine", checkpoint="my-team/my-retriever", signals=())
    def load(checkpoint: str, options: Options): ...   # returns an object with `card`, `encode_pages`, `encode_queries`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from harness.store.encoded_page import EncodedPage as EncodedPage

if TYPE_CHECKING:
    import torch

VISUAL, TEXT_TOKENS = "visual", "text tokens"
"""What the vectors of a page stand for. Backbones of two kinds are never compared."""


@dataclass(frozen=True)
class Options:
    """How to load a backbone. None means: choose by the hardware (device, dtype) or by the checkpoint (tokens)."""

    device: str | None = None
    dtype: str | None = None
    max_visual_tokens: int | None = None
    revision: str | None = None


@dataclass(frozen=True)
class Card:
    """What identifies a loaded backbone and explains its output. All of it goes into the key of a store."""

    name: str
    checkpoint: str
    revision: str
    """A commit, or a hash of the files when the checkpoint is a local folder."""
    layers: int
    heads: int
    dim: int
    dtype: str
    signals: tuple[str, ...]
    signals_from: str
    """What the signals were read from: the retriever's own decoder, another model, or nothing."""
    page_prompt: str
    token_layout: str
    eos_token: str
    """The last valid token of the page prompt, whose attention is the `eos` signal."""
    query_template: str
    max_visual_tokens: int | None = None
    kind: str = VISUAL
    """`TEXT_TOKENS`: `encode_pages` is given the pages' texts instead of their images."""
    attention_layers: tuple[int, ...] | None = None
    """Of a hybrid decoder: the layer that each row of the signals stands for. None: row i is layer i.

    `layers` counts rows, and windows and curves run over rows: a layer without attention has none.
    """

    @property
    def rows_are(self) -> str:
        """What the rows of signals, curves and windows stand for, if not for all layers in turn; else nothing."""
        if self.attention_layers is None:
            return ""
        return f"layers with attention; in the decoder they are {', '.join(map(str, self.attention_layers))}"

    def as_dict(self) -> dict[str, Any]:
        stated = {**asdict(self), "signals": list(self.signals)}
        if self.attention_layers is None:
            del stated["attention_layers"]
        else:
            stated["attention_layers"] = list(self.attention_layers)
        return stated


class Backbone(Protocol):
    """The whole protocol."""

    @property
    def card(self) -> Card: ...

    def encode_pages(self, pages: Sequence[Any], /) -> list[EncodedPage]:
        """Encode one batch of images (of texts, if `card.kind` says so).

        A page's result must not depend on the pages beside it.
        """
        ...

    def encode_queries(self, texts: Sequence[str]) -> list[torch.Tensor]:
        """One `[tokens, d]` tensor a query, from the raw query text: the template is the backbone's own business."""
        ...


Loader = Callable[[str, Options], Backbone]


def backbone(
    name: str,
    *,
    checkpoint: str,
    revision: str | None = None,
    signals: tuple[str, ...],
    layers: int | None = None,
    heads: int | None = None,
    dim: int | None = None,
    kind: str = VISUAL,
) -> Callable[[Loader], Loader]:
    """Mark a loader as a backbone. The facts are those of the default checkpoint; a loaded `Card` states the real ones.

    `revision` is the commit at which the default checkpoint is read; of another one the newest is, unless it is named.

    Give plain literals: `harness list backbones` reads them from the source without importing it.
    """

    def mark(loader: Loader) -> Loader:
        facts = {
            "checkpoint": checkpoint,
            "revision": revision,
            "signals": signals,
            "layers": layers,
            "heads": heads,
            "dim": dim,
            "kind": kind,
        }
        loader.__backbone__ = {"name": name, **facts}  # type: ignore[attr-defined]
        return loader

    return mark
