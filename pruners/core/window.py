"""A window: layers of a backbone. Known without torch, because texts that name one are read without it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .errors import PruneBoardError

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Window:
    """Layers `[start, stop)` of a backbone, written the way papers do: `11-14` is the four layers 11, 12, 13, 14.

    `stop=None` (written `all` when start is 0) runs to the last layer.
    """

    start: int
    stop: int | None

    def __post_init__(self) -> None:
        if self.start < 0 or (self.stop is not None and self.stop <= self.start):
            raise PruneBoardError(f"layers [{self.start}, {self.stop}) are no window: it needs 0 <= start < stop")

    @classmethod
    def parse(cls, text: str) -> Window:
        """`11-14`, a single layer `5`, or `all`."""
        if text == "all":
            return cls(0, None)
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
        if match is None:
            raise PruneBoardError(f"{text!r} is not a window of layers; write 11-14, a single layer 5, or all")
        first = int(match[1])
        return cls(first, int(match[2] or first) + 1)

    def __str__(self) -> str:
        if self.stop is None:
            return "all" if self.start == 0 else f"{self.start}-"
        return f"{self.start}" if self.stop == self.start + 1 else f"{self.start}-{self.stop - 1}"

    def mean(self, signal: torch.Tensor) -> torch.Tensor:
        """Mean of a `[L, N]` signal over the window's layers (SAP, Eq. 5)."""
        if (self.stop or self.start + 1) > signal.shape[0]:
            raise PruneBoardError(f"window {self} asks for layers beyond the {signal.shape[0]} this backbone has")
        return signal[self.start : self.stop].mean(0)
