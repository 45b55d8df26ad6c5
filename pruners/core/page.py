"""A page as a pruner sees it, and the window of layers a signal is read from.

A page carries what was captured when it was encoded and nothing of any query. Pruners must not write into it:
`Page.fingerprint` is compared before and after every call (see `apply.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
import xxhash

from .errors import PruneBoardError

SIGNALS = {
    "indegree": "attention a patch receives from visual rows, mean over heads, per layer (SAP, Eq. 2-3)",
    "indegree_max": "the same, maximum over heads",
    "all_to_visual": "attention a patch receives from all rows, prompt included, mean over heads, per layer",
    "eos": "attention of the last valid prompt token to a patch, mean over heads, per layer",
    "ink": "standard deviation of a patch's pixels, one row",
    "token": "of a text encoder: the number of each token in its vocabulary, one row",
    "stopword": "of a text encoder: 1 where a token belongs to a stop word or is no word, else 0, one row",
}
"""The signals the built-in backbones capture. A backbone of one's own may offer others; methods ask by name."""


class _Declared(dict[str, torch.Tensor]):
    """The signals that a method declared. Another one is a mistake, even where the backbone has it."""

    def __missing__(self, name: str) -> torch.Tensor:
        raise PruneBoardError(f"it reads the signal {name!r} without declaring it; write needs=({name!r},)")


@dataclass(frozen=True)
class Page:
    """`vectors [N, d]` (float32), the patch `grid` (rows, cols) if there is one, `signals` by name `[L, N]`."""

    id: str
    vectors: torch.Tensor
    grid: tuple[int, int] | None = None
    signals: Mapping[str, torch.Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        v = self.vectors
        if not isinstance(v, torch.Tensor) or v.dtype != torch.float32 or v.ndim != 2 or v.shape[0] < 1:
            raise PruneBoardError(
                f"page {self.id!r}: vectors must be a float32 tensor [N, d] with N >= 1, not {_say(v)}"
            )
        # a sum is finite only if all its parts are, and far cheaper to look at
        if not v.sum().isfinite() and not torch.isfinite(v).all():
            raise PruneBoardError(f"page {self.id!r}: its vectors contain NaN or infinity; encode the page again")
        if self.grid is not None and self.grid[0] * self.grid[1] != len(self):
            rows, cols = self.grid
            raise PruneBoardError(f"page {self.id!r}: a {rows} x {cols} grid does not hold its {len(self)} vectors")
        for name, signal in self.signals.items():
            if not isinstance(signal, torch.Tensor) or signal.ndim != 2 or signal.shape[1] != len(self):
                raise PruneBoardError(
                    f"page {self.id!r}: signal {name!r} must be a tensor [layers, {len(self)}], not {_say(signal)}"
                )

        object.__setattr__(self, "vectors", v.contiguous())  # rows one after another: compiled loops expect it
        object.__setattr__(self, "signals", {name: signal.contiguous() for name, signal in self.signals.items()})

    def __len__(self) -> int:
        return self._count

    @cached_property
    def _count(self) -> int:  # asked for hundreds of times, and a tensor is slow to tell its shape
        return self.vectors.shape[0]

    @cached_property
    def available(self) -> frozenset[str]:
        """What a pruner may need of this page: its signals, and `grid` if it has one."""
        return frozenset(self.signals) | ({"grid"} if self.grid else set())

    def offering(self, needs: Collection[str]) -> Page:
        """This page with the signals (and the grid) that a method declared, and no others; made once for each set."""
        wanted = frozenset(needs)
        if wanted not in self._views:
            view = object.__new__(Page)  # the same tensors, which were checked when this page was made
            grid = self.grid if "grid" in wanted else None
            signals = _Declared((name, signal) for name, signal in self.signals.items() if name in wanted)
            view.__dict__.update(id=self.id, vectors=self.vectors, grid=grid, signals=signals)
            self._views[wanted] = view
        return self._views[wanted]

    @cached_property
    def _views(self) -> dict[frozenset[str], Page]:
        return {}

    @cached_property
    def original(self) -> tuple[int, ...]:
        """The fingerprint as it was when first asked for."""
        return self.fingerprint()

    def fingerprint(self) -> tuple[int, ...]:
        """A hash of each tensor's contents, cheap enough (about 10 GB/s) to guard every pruner call."""
        return tuple(map(xxhash.xxh3_64_intdigest, self._contents))

    @cached_property
    def _contents(self) -> list[memoryview]:
        """The tensors' own memory."""
        return [np.asarray(tensor).data for tensor in (self.vectors, *self.signals.values())]


def _say(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {list(value.shape)}"
    if isinstance(value, np.ndarray):
        return f"a numpy array {value.dtype} {list(value.shape)}"
    return type(value).__name__
