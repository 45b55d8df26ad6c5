"""A calibrated pruner or codec as JSON and tensors, and back: so that a run's methods can be used as measured.

Nothing that is read can run code: a pruner is named, and made by the class of that name; values are numbers, texts,
windows, tensors, and lists and dictionaries of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from .codec import Codec
from .errors import PruneBoardError
from .text_form import TextForm
from .window import Window


class UnwritableError(PruneBoardError):
    """A pruner holds something that is neither a number, a text, a tensor nor a collection of these."""


def as_tree(form: TextForm) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """A pruner or codec with all its fields as JSON, and the tensors that this names."""
    tensors: dict[str, torch.Tensor] = {}

    def write(value: Any, where: str) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, str)) or type(value) is int:
            return value
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else {"float": repr(float(value))}
        if isinstance(value, TextForm):
            fields = {name: write(inner, f"{where}{name}.") for name, inner in value.fields().items()}
            return {"codec" if isinstance(value, Codec) else "pruner": value.name, "fields": fields}
        if isinstance(value, Window):
            return {"window": [value.start, value.stop]}
        if isinstance(value, (list, tuple)):
            return {type(value).__name__: [write(inner, f"{where}{i}.") for i, inner in enumerate(value)]}
        if isinstance(value, dict):
            pairs = enumerate(value.items())
            return {"dict": [[write(key, f"{where}{i}."), write(inner, f"{where}{i}.")] for i, (key, inner) in pairs]}
        name = where.rstrip(".")
        if isinstance(value, torch.Tensor):
            tensors[name] = value.detach().cpu().clone(memory_format=torch.contiguous_format)  # two may share memory
            return {"tensor": name}
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            tensors[name] = torch.from_numpy(np.ascontiguousarray(value))
            return {"array": name}
        raise UnwritableError(
            f"{form} learned a {type(value).__name__} ({name}), which a run cannot keep; let it learn numbers, "
            "texts, tensors, arrays, or lists and dictionaries of these"
        )

    return write(form, ""), tensors


def from_tree(tree: Any, tensors: Mapping[str, torch.Tensor], class_of: Callable[[str], type[TextForm]]) -> Any:
    """What `as_tree` wrote. `class_of` knows the class of each pruner, or of a codec, by its name."""

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if name := value.get("pruner") or value.get("codec"):
            fields: dict[str, Any] = value["fields"]
            return class_of(name)(**{field: read(inner) for field, inner in fields.items()})
        ((kind, inner),) = value.items()
        return READERS[kind](inner, read, tensors)

    return read(tree)


READERS: dict[str, Callable[[Any, Callable[[Any], Any], Mapping[str, torch.Tensor]], Any]] = {
    "float": lambda text, read, tensors: float(text),
    "window": lambda ends, read, tensors: Window(*ends),
    "list": lambda items, read, tensors: [read(item) for item in items],
    "tuple": lambda items, read, tensors: tuple(read(item) for item in items),
    "dict": lambda pairs, read, tensors: {read(key): read(item) for key, item in pairs},
    "tensor": lambda name, read, tensors: tensors[name],
    "array": lambda name, read, tensors: tensors[name].numpy(),
}


def pack_tensors(tensors: Mapping[str, torch.Tensor]) -> bytes:
    from safetensors.torch import save

    return save(dict(tensors))


def read_tensors(data: bytes | None) -> dict[str, torch.Tensor]:
    """The tensors beside a method's JSON; none, if it learned none."""
    from safetensors.torch import load

    return {} if data is None else load(data)
