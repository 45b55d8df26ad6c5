"""One page pruned at one budget, for those who build an index with a method: `prune("kmeans", vectors, budget=0.1)`.

The harness itself prunes at all budgets at once and asks for no more than it needs: see `apply.py`.
"""

from __future__ import annotations

import dataclasses
import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .contract import Pruner, Subset
from .errors import CatalogError, PruneBoardError
from .page import Page


@dataclass(frozen=True)
class Pruned:
    """What is left of a page.

    `vectors [k, d]` are of the type that was given: a tensor or a numpy array, of the same dtype. `indices [k]` says
    which of the page's vectors were kept, the best first; None if the method made new ones.
    """

    vectors: Any
    indices: np.ndarray | None

    def __len__(self) -> int:
        return len(self.vectors)


def prune_one(
    method: Pruner | type[Pruner] | str, page: Page | torch.Tensor | np.ndarray, budget: float, **options: Any
) -> Pruned:
    """Prune a page, or plain vectors `[N, d]` of any floating type, at one budget."""
    from .apply import prune

    given = page.vectors if isinstance(page, Page) else page
    result = prune(as_pruner(method), page if isinstance(page, Page) else as_page(page), [budget], **options)
    if isinstance(result, Subset):
        kept = result.kept(0).copy()
        at = torch.from_numpy(kept).to(given.device) if isinstance(given, torch.Tensor) else kept
        return Pruned(given[at], kept)
    vectors = result.vectors[0]
    if isinstance(given, torch.Tensor):
        return Pruned(vectors.to(given), None)
    return Pruned(vectors.numpy().astype(given.dtype), None)


def as_pruner(method: Any) -> Pruner:
    """A method as a user names it: an instance, its class (a decorated function is one), or its text form."""
    if isinstance(method, Pruner):
        return method
    if isinstance(method, str):
        from .catalog import parse

        return parse(method)
    if inspect.isclass(method) and issubclass(method, Pruner) and hasattr(method, "declaration"):
        fields = dataclasses.fields(method)  # type: ignore[arg-type]
        if missing := [f.name for f in fields if f.default is dataclasses.MISSING]:
            name = method.declaration.name
            raise CatalogError(f"{name} needs {', '.join(missing)}: give {name}({missing[0]}=…) instead of the class")
        return method()
    if callable(method):
        name = getattr(method, "__name__", str(method))
        raise CatalogError(f"{name} is no pruner yet: decorate it with @scorer or @reducer from `pruners`")
    raise CatalogError(f"a {type(method).__name__} names no pruner: give a pruner, its class, or its text form")


def as_page(vectors: Any, name: str = "page") -> Page:
    """Plain vectors as a page: float32 on the CPU, without a grid and without signals."""
    if isinstance(vectors, np.ndarray) and vectors.dtype.kind == "f":
        vectors = torch.from_numpy(np.ascontiguousarray(vectors, np.float32))
    elif isinstance(vectors, torch.Tensor) and vectors.is_floating_point():
        vectors = vectors.detach().cpu().float()
    else:
        kind = getattr(vectors, "dtype", type(vectors).__name__)
        raise PruneBoardError(f"a page is a Page, or vectors [N, d] as a tensor or array of floats, not {kind}")
    return Page(name, vectors)
