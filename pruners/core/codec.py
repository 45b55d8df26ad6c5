"""The contract of a codec: how each vector of an index is stored, whatever pruner chose or made it.

A codec says what is written for a vector as a numpy record type (`row`), so that its size is that record's size and
nothing else. Scores are always of `decode(encode(vectors))`: what is measured is what was really stored.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from .errors import CatalogError, PruneBoardError
from .text_form import TextForm

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class CodecDeclaration:
    """What a codec says of itself in its decorator."""

    name: str
    paper: str = ""


class Codec(TextForm):
    """A way to store vectors. An author writes `row`, `encode`, `decode`, and what differs from the rest here."""

    declaration: ClassVar[CodecDeclaration]

    def row(self, dim: int) -> np.dtype:
        """What is stored of one vector of `dim` numbers: a record, without gaps."""
        raise NotImplementedError(f"{type(self).__name__} must say what it stores of a vector")

    def encode(self, vectors: np.ndarray) -> np.ndarray:
        """`vectors [k, dim]` (float32) as `k` records."""
        raise NotImplementedError(f"{type(self).__name__} must say how it encodes")

    def decode(self, rows: np.ndarray, dim: int) -> np.ndarray:
        """The vectors (float32) that a search compares with `query`'s."""
        raise NotImplementedError(f"{type(self).__name__} must say how it decodes")

    def query(self, tokens: np.ndarray) -> np.ndarray:
        """What of a query's vectors `[tokens, dim]` is compared with decoded ones: by default they themselves."""
        return tokens

    @property
    def changes_queries(self) -> bool:
        return type(self).query is not Codec.query

    def width(self, dim: int) -> int:
        """How many numbers a decoded vector has."""
        return dim

    def shared(self, dim: int) -> Mapping[str, np.ndarray]:
        """What a search needs once for all pages, as it is stored: codebooks, rotations."""
        return {}

    def shared_bytes(self, dim: int) -> int:
        """The size of `shared`, known before anything is learned."""
        return 0

    @property
    def needs_calibration(self) -> bool:
        """Whether it learns from the vectors of calibration pages."""
        return self.learns

    def calibrate(self, vectors: np.ndarray) -> Self:
        """A new instance that has learned from `vectors [n, dim]`: those of whole calibration pages, whichever pruner
        it stands beside."""
        return self

    def pack(self, vectors: np.ndarray) -> bytes:
        """Vectors as they lie in a file."""
        return self._records(vectors).tobytes()

    def unpack(self, data: bytes, dim: int) -> np.ndarray:
        """What `pack` wrote, decoded."""
        row = self.row(dim)
        if len(data) % row.itemsize:
            raise PruneBoardError(f"{len(data)} bytes are no vectors of {self}, which takes {row.itemsize} for each")
        return self.decode(np.frombuffer(data, row), dim)

    def stored(self, vectors: torch.Tensor) -> torch.Tensor:
        """Vectors as a search finds them."""
        import torch  # sizes are checked, and the site is built, without it

        dim = vectors.shape[1]
        rows = self._records(vectors.detach().cpu().numpy())
        return torch.from_numpy(np.ascontiguousarray(self.decode(rows, dim), np.float32))

    def _records(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors encoded. One that is too long for what it is stored in is refused: as inf it would spoil scores."""
        with np.errstate(over="ignore", invalid="ignore"):
            rows = self.encode(np.ascontiguousarray(vectors, np.float32))
        for name in rows.dtype.names or ():
            if rows[name].dtype.kind == "f" and not np.isfinite(rows[name]).all():
                kind, top = rows[name].dtype.name, np.finfo(rows[name].dtype).max
                raise PruneBoardError(
                    f"{self} stores the {name} of a vector as {kind}, which ends at {top:,.0f}: a vector here is too "
                    "long, or not finite; scale vectors to length 1 before they are stored"
                )
        return rows


def codec(name: str, *, paper: str = "") -> Callable[[Any], Any]:
    """Declares a codec: a frozen dataclass that subclasses `Codec`. Arguments are literals, as a pruner's are."""

    def decorate(cls: Any) -> Any:
        params = getattr(cls, "__dataclass_params__", None)
        if not (inspect.isclass(cls) and issubclass(cls, Codec)) or params is None or not params.frozen:
            raise CatalogError(f"{name!r}: a codec is a @dataclass(frozen=True) and a subclass of Codec")
        cls.declaration = CodecDeclaration(name, paper)
        return cls

    return decorate


def filled(row: np.dtype, **columns: np.ndarray) -> np.ndarray:
    """Records of type `row` from an array for each of its fields."""
    rows = np.empty(len(next(iter(columns.values()))), row)
    for name, values in columns.items():
        rows[name] = values
    return rows
